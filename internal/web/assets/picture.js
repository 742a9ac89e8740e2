"use strict";

// Draws the table of the page /picture as a graph. The table stays, for readers who do not see
// the picture. Text gets into the drawing as text nodes and attributes only.
(() => {
  const svgNamespace = "http://www.w3.org/2000/svg";
  const size = { width: 256, height: 46, text: 30, kind: 36, margin: 12 };
  const step = 60; // pixels that an arrow key moves the picture by
  let drawn = ""; // the graph in the drawing, as JSON
  let view = null; // the visible part of the picture: x, y, width, height
  let scale = 1; // pixels on the screen for one of the picture
  let whole = null; // the size of the picture

  // The graph

  function readGraph(table) {
    return [...table.querySelectorAll("tr[data-node]")].map((row) => ({
      id: row.dataset.node,
      kind: row.dataset.kind,
      label: row.dataset.label,
      state: row.dataset.state,
      link: row.querySelector("a").getAttribute("href"),
      to: [...row.querySelectorAll("[data-to]")].map((target) => ({ id: target.dataset.to, problem: target.dataset.problem })),
    }));
  }

  function layOut(nodes) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 50, marginx: size.margin, marginy: size.margin });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of nodes) graph.setNode(node.id, { width: size.width, height: size.height });
    for (const node of nodes) for (const to of node.to) {
      graph.setEdge(node.id, to.id, { problem: to.problem, labelpos: "c", width: to.problem ? 8 * (to.problem.length + 2) : 0, height: to.problem ? 14 : 0 });
    }
    dagre.layout(graph);
    return graph;
  }

  // Shapes: each kind has its own outline, and its name is in the node.

  const w = size.width / 2;
  const h = size.height / 2;
  const outlines = {
    Gateway: `M${-w} ${-h}H${w}V${h}H${-w}Z M${-w + 4} ${-h + 4}H${w - 4}V${h - 4}H${-w + 4}Z`,
    ListenerSet: `M${-w + 10} ${-h}H${w - 10}L${w} ${-h + 10}V${h - 10}L${w - 10} ${h}H${-w + 10}L${-w} ${h - 10}V${-h + 10}Z`,
    Hostname: `M${-w + h} ${-h}H${w - h}A${h} ${h} 0 0 1 ${w - h} ${h}H${-w + h}A${h} ${h} 0 0 1 ${-w + h} ${-h}Z`,
    HTTPRoute: `M${-w} ${-h}H${w - 14}L${w} 0L${w - 14} ${h}H${-w}Z`,
    GRPCRoute: `M${-w} ${-h}H${w - 14}L${w} 0L${w - 14} ${h}H${-w}L${-w + 14} 0Z`,
  };
  const rectangle = `M${-w} ${-h}H${w}V${h}H${-w}Z`;

  function element(parent, name, attributes, text) {
    const e = document.createElementNS(svgNamespace, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  }

  const shorten = (text, limit) => (text.length > limit ? text.slice(0, limit / 2 - 1) + "…" + text.slice(-limit / 2) : text);

  function drawNode(parent, node, at) {
    const link = element(parent, "a", { href: node.link, transform: `translate(${at.x} ${at.y})`, class: node.state ? "node failed" : "node" });
    link.dataset.node = node.id;
    element(link, "title", {}, `${node.kind} ${node.label}${node.state ? ": " + node.state : ""}`);
    element(link, "path", { d: outlines[node.kind] ?? rectangle, class: "outline" });
    element(link, "text", { x: -w + 18, y: -4, class: "kind" }, shorten(node.state ? `${node.kind}: ✗ ${node.state}` : node.kind, size.kind));
    element(link, "text", { x: -w + 18, y: 13 }, shorten(node.label, size.text));
    return link;
  }

  function drawEdge(parent, edge, label) {
    const [first, ...rest] = label.points;
    const line = element(parent, "path", {
      class: label.problem ? "edge failed" : "edge",
      d: `M${first.x} ${first.y}` + rest.map((p) => `L${p.x} ${p.y}`).join(""),
      "marker-end": "url(#arrow)",
    });
    Object.assign(line.dataset, { from: edge.v, to: edge.w });
  }

  function drawProblem(parent, label) {
    if (label.problem) element(parent, "text", { x: label.x, y: label.y + 4, class: "failure" }, "✗ " + label.problem);
  }

  // draw replaces the drawing, and keeps the visible part and the focus of an earlier one.
  function draw() {
    const place = document.getElementById("drawing");
    const table = document.getElementById("graph");
    if (!place || !table) {
      drawn = "";
      view = null;
      return;
    }
    const nodes = readGraph(table);
    const description = JSON.stringify(nodes);
    place.hidden = false;
    if (place.firstChild && description === drawn) return;
    drawn = description;
    const focus = document.activeElement?.closest?.("#drawing [data-node]")?.dataset.node;
    const graph = layOut(nodes);
    const svg = document.createElementNS(svgNamespace, "svg");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "Picture. Arrow keys move it, plus and minus change its size, 0 shows everything.");
    const marker = element(element(svg, "defs", {}), "marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
    element(marker, "path", { d: "M0 0L8 4L0 8Z", class: "head" });
    const edges = element(svg, "g", {});
    for (const edge of graph.edges()) drawEdge(edges, edge, graph.edge(edge));
    for (const edge of graph.edges()) drawProblem(edges, graph.edge(edge)); // above the lines
    for (const node of nodes) drawNode(svg, node, graph.node(node.id));
    place.replaceChildren(toolbar(), svg);
    whole = { x: 0, y: 0, width: graph.graph().width, height: graph.graph().height };
    if (view) show(view);
    else fit();
    if (focus) [...svg.querySelectorAll("[data-node]")].find((n) => n.dataset.node === focus)?.focus({ preventScroll: true });
  }

  // The visible part

  const svgElement = () => document.querySelector("#drawing svg");

  function show(next) {
    view = next;
    scale = svgElement().getBoundingClientRect().width / view.width;
    svgElement().setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  }

  // fit shows everything, or the beginning in a size that can be read.
  function fit(smallest = 0.75) {
    const available = svgElement().getBoundingClientRect().width;
    svgElement().setAttribute("height", Math.ceil(whole.height * Math.min(1, Math.max(smallest, available / whole.width))) + 2);
    const box = svgElement().getBoundingClientRect();
    const fitting = Math.min(1, Math.max(smallest, Math.min(box.width / whole.width, box.height / whole.height)));
    const width = box.width / fitting;
    const height = box.height / fitting;
    const before = (all, part) => (part > all ? (all - part) / 2 : 0);
    show({ x: before(whole.width, width), y: before(whole.height, height), width, height });
  }

  function zoom(factor) {
    const width = Math.min(Math.max(view.width * factor, 200), Math.max(8 * whole.width, 2000));
    const height = (view.height * width) / view.width;
    show({ x: view.x + (view.width - width) / 2, y: view.y + (view.height - height) / 2, width, height });
  }

  function move(x, y) {
    show({ ...view, x: view.x + x / scale, y: view.y + y / scale });
  }

  const keys = {
    ArrowLeft: () => move(-step, 0),
    ArrowRight: () => move(step, 0),
    ArrowUp: () => move(0, -step),
    ArrowDown: () => move(0, step),
    "+": () => zoom(1 / 1.25),
    "-": () => zoom(1.25),
    0: () => fit(0),
  };

  function toolbar() {
    const bar = document.createElement("p");
    for (const [text, name, act] of [["+", "Larger", keys["+"]], ["−", "Smaller", keys["-"]], ["Show everything", null, keys[0]]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      if (name) button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
      bar.append(button, " ");
    }
    return bar;
  }

  // reveal moves the picture so that the node is visible.
  function reveal(node) {
    const box = node.getBoundingClientRect();
    const frame = svgElement().getBoundingClientRect();
    const beyond = (low, high, least, most) => (low < least ? low - least - size.margin : high > most ? high - most + size.margin : 0);
    move(beyond(box.left, box.right, frame.left, frame.right), beyond(box.top, box.bottom, frame.top, frame.bottom));
  }

  // What belongs to a node: everything before and behind it.

  function highlight(id) {
    const edges = [...document.querySelectorAll("#drawing .edge")];
    const related = new Set(id === null ? [] : [id]);
    for (const [from, to] of [["from", "to"], ["to", "from"]]) {
      const found = new Set(related.has(id) ? [id] : []);
      for (const node of found) for (const edge of edges) if (edge.dataset[from] === node) found.add(edge.dataset[to]);
      for (const node of found) related.add(node);
    }
    svgElement().classList.toggle("focused", id !== null);
    for (const node of document.querySelectorAll("#drawing [data-node]")) node.classList.toggle("related", related.has(node.dataset.node));
    for (const edge of edges) edge.classList.toggle("related", related.has(edge.dataset.from) && related.has(edge.dataset.to));
  }

  const nodeAt = (event) => event.target.closest?.("#drawing [data-node]") ?? null;

  document.addEventListener("focusin", (event) => {
    const node = nodeAt(event);
    if (!svgElement()) return;
    highlight(node ? node.dataset.node : null);
    if (node?.matches(":focus-visible")) reveal(node);
  });
  document.addEventListener("pointerover", (event) => {
    if (svgElement() && (nodeAt(event) || event.target.closest?.("#drawing"))) highlight((nodeAt(event) ?? document.activeElement.closest("#drawing [data-node]"))?.dataset.node ?? null);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("#drawing svg") || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !event.target.closest?.("#drawing svg")) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });

  let drag = null;
  document.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest?.("#drawing svg")) drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = [drag.x - event.clientX, drag.y - event.clientY];
    if (!drag.moved && Math.hypot(x, y) < 4) return;
    move(x, y);
    drag = { x: event.clientX, y: event.clientY, moved: true };
  });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => {
      const moved = drag?.moved;
      drag = null;
      if (!moved) return;
      const stay = (event) => event.preventDefault(); // the click at the end does not follow a link
      document.addEventListener("click", stay, { capture: true });
      setTimeout(() => document.removeEventListener("click", stay, { capture: true }));
    });
  }
  document.addEventListener("dragstart", (event) => { if (event.target.closest?.("#drawing")) event.preventDefault(); });

  window.addEventListener("resize", () => {
    if (!svgElement()) return;
    const box = svgElement().getBoundingClientRect();
    show({ ...view, width: box.width / scale, height: box.height / scale });
  });
  document.addEventListener("htmx:after:swap", draw);
  draw();
})();
