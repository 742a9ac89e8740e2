"use strict";

// The page replaces its content with the content for the newest state of tunnel-gateway ui.
// A state is the ID of the server process and a revision, which counts up in one process.
(() => {
  const answerLimit = 15000; // ms without any event; the server sends one each 5 s
  const pauses = [500, 1000, 2000, 5000]; // ms before each try to connect or read again

  const byId = (id) => document.getElementById(id);
  const shown = () => ({ server: byId("page").dataset.server, revision: Number(byId("page").dataset.revision) });
  const address = () => location.pathname + location.search;

  // Update: one request at a time, until the page shows the newest state.

  let newest = shown(); // state that the server has announced
  let updating = false;
  let failures = 0;
  let retry = 0;

  // isOlder reports whether the server replaced state a by b.
  const isOlder = (a, b) => a.server !== b.server || a.revision < b.revision;

  async function update() {
    if (updating) return;
    updating = true;
    clearTimeout(retry);
    while (isOlder(shown(), newest)) {
      const before = shown();
      try {
        await htmx.ajax("GET", address(), { target: "#page", select: "#page", swap: "outerMorph", live: true });
      } catch { /* shown as a failure below */ }
      if (!isOlder(before, shown())) {
        failures++;
        retry = setTimeout(update, pauses[Math.min(failures, pauses.length) - 1]);
        break;
      }
      failures = 0;
      say("The page was updated at " + new Date().toLocaleTimeString() + ".");
    }
    updating = false;
  }

  // An answer may replace the page if it is a page, and not older than what is shown. An update
  // for an address that a form has changed meanwhile is dropped; an older answer to a form is
  // asked for again.
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail;
    const main = tasks.map((task) => task.fragment?.querySelector("#page")).find(Boolean);
    if (!main) {
      event.preventDefault();
      if (!ctx.live) say("tunnel-gateway ui does not show this: " + ctx.text.slice(0, 200));
      return;
    }
    const now = shown();
    const old = main.dataset.server === now.server && Number(main.dataset.revision) < now.revision;
    if (ctx.live && ctx.request.action !== address()) {
      event.preventDefault();
    } else if (old) {
      event.preventDefault();
      if (!ctx.live) {
        const { target, select, swap, push, replace } = ctx;
        htmx.ajax("GET", ctx.request.action, { target, select, swap, push, replace });
      }
    } else {
      remember();
    }
  });

  document.addEventListener("htmx:after:swap", () => {
    restore();
    showLost();
    update();
  });

  // Focus: the morph may replace the element with the focus, or give it another link.

  let focused = null;

  function remember() {
    const element = document.activeElement;
    focused = null;
    if (!element || !byId("page").contains(element) || element === byId("page")) return;
    focused = { element, id: element.id, href: element.getAttribute("href"), start: null, end: null };
    try {
      focused.start = element.selectionStart;
      focused.end = element.selectionEnd;
    } catch { /* has no selection */ }
  }

  function restore() {
    const last = focused;
    focused = null;
    const isSame = (e) => e.isConnected && e.id === last.id && e.getAttribute("href") === last.href;
    if (!last || (document.activeElement === last.element && isSame(last.element))) return;
    const page = byId("page");
    const candidates = last.id ? [byId(last.id)] : [...page.querySelectorAll("a[href]")].filter((a) => last.href && a.getAttribute("href") === last.href);
    const element = (isSame(last.element) ? last.element : candidates[0]) ?? page;
    element.focus({ preventScroll: true });
    if (last.start !== null && element.setSelectionRange) element.setSelectionRange(last.start, last.end);
  }

  function say(text) { byId("note").textContent = text; }

  // Connection: a visible page has an event stream. A hidden page has none, because a browser
  // permits only six connections for all pages of one address.

  let stream = null;
  let silence = 0;
  let tries = 0;
  let reconnect = 0;
  let lostSince = null;
  let isRefused = false;

  function connect() {
    clearTimeout(reconnect);
    if (stream || document.hidden) return;
    stream = new EventSource("/events");
    stream.addEventListener("state", (event) => {
      const [server, revision] = event.data.split(" ");
      heard();
      newest = { server, revision: Number(revision) };
      update();
    });
    stream.addEventListener("alive", heard);
    stream.addEventListener("error", lose);
    watch();
  }

  function watch() {
    clearTimeout(silence);
    silence = setTimeout(lose, answerLimit);
  }

  function heard() {
    watch();
    tries = 0;
    lostSince = null;
    isRefused = false;
    showLost();
  }

  function disconnect() {
    clearTimeout(silence);
    clearTimeout(reconnect);
    stream?.close();
    stream = null;
  }

  // lose says that the connection is lost, finds out why, and tries again.
  async function lose() {
    disconnect();
    lostSince ??= new Date();
    showLost();
    reconnect = setTimeout(connect, pauses[Math.min(tries++, pauses.length - 1)]);
    try {
      const answer = await fetch("/events", { method: "HEAD", cache: "no-store" });
      isRefused = answer.status === 403;
    } catch {
      isRefused = false;
    }
    showLost();
  }

  function showLost() {
    const banner = byId("lost");
    banner.hidden = !lostSince;
    if (!lostSince) return;
    const since = lostSince.toLocaleTimeString();
    const text = isRefused
      ? `tunnel-gateway ui was started again, so this page gets no updates since ${since}. Open a new link from its terminal.`
      : `The connection to tunnel-gateway ui is lost since ${since}. The page shows the last state that it received, and connects again by itself.`;
    if (banner.textContent !== text) banner.textContent = text;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
})();
