package mirror

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestMain removes the handlers of errors in client-go. One of them compares the times of errors
// in all tests, whose virtual times differ by years, and sleeps for that long.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// server counts the requests to a fake API server, and answers them with fail instead if fail
// returns an error. verb is list, watch or get.
type server struct {
	client.WithWatch
	requests map[string]*atomic.Int64
	fail     atomic.Pointer[func(verb string, o any) error]

	mu      sync.Mutex
	watches []watch.Interface
}

// breakLists ends the watch, and fails lists and watches from now on.
func (s *server) breakLists() {
	s.respond(func(verb string, _ any) error {
		if verb != "get" {
			return apierrors.NewInternalError(errors.New("conversion failed"))
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.Stop()
	}
}

func newServer(objects ...client.Object) *server {
	s := &server{requests: map[string]*atomic.Int64{"list": {}, "watch": {}, "get": {}}}
	s.respond(func(string, any) error { return nil })
	s.WithWatch = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := s.count("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if err := s.count("watch", list); err != nil {
				return nil, err
			}
			w, err := c.Watch(ctx, list, opts...)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watches = append(s.watches, w)
			return w, err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := s.count("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	return s
}

func (s *server) respond(fail func(verb string, o any) error) { s.fail.Store(&fail) }

func (s *server) count(verb string, o any) error {
	s.requests[verb].Add(1)
	return (*s.fail.Load())(verb, o)
}

// run runs the test with a Mirror in virtual time.
func run(t *testing.T, s *server, test func(t *testing.T, m *Mirror)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		test(t, Start(ctx, s))
		cancel()
		synctest.Wait()
	})
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
}

func forbidden() error { return apierrors.NewForbidden(schema.GroupResource{}, "", nil) }

// services lists the Services of a namespace, or of all, as "namespace/name".
func services(t *testing.T, m *Mirror, namespace string) []string {
	t.Helper()
	var list corev1.ServiceList
	if err := m.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]).String())
	}
	return names
}

// expectChange waits for a change and reports whether there was one in a minute.
func expectChange(t *testing.T, m *Mirror, want bool) {
	t.Helper()
	select {
	case <-m.Changed():
		if !want {
			t.Error("the Mirror reports a change, but nothing has changed")
		}
	case <-time.After(time.Minute):
		if want {
			t.Error("the Mirror reports no change")
		}
	}
}

func expect[T any](t *testing.T, name string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestListsFollowChanges(t *testing.T) {
	s := newServer(service("b", "b"), service("a", "z"), service("a", "a"))
	run(t, s, func(t *testing.T, m *Mirror) {
		expect(t, "all Services", services(t, m, ""), []string{"a/a", "a/z", "b/b"})
		expect(t, "the Services of a namespace", services(t, m, "b"), []string{"b/b"})
		synctest.Wait() // until the watches have begun
		expectChange(t, m, false)

		if err := s.Create(t.Context(), service("a", "new")); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, true)
		if err := s.Delete(t.Context(), service("a", "a")); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, true)
		expect(t, "all Services after the changes", services(t, m, ""), []string{"a/new", "a/z", "b/b"})
		expect(t, "lists", s.requests["list"].Load(), 2)
	})
}

func TestObjectsLoseWhatNoPlanReads(t *testing.T) {
	object := service("a", "a")
	object.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "kept": "yes"}
	run(t, newServer(object), func(t *testing.T, m *Mirror) {
		var list corev1.ServiceList
		if err := m.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		expect(t, "annotations", list.Items[0].Annotations, map[string]string{"kept": "yes"})
	})
}

func TestARefusedListIsTriedAgainLater(t *testing.T) {
	s := newServer(service("a", "a"))
	s.respond(func(verb string, _ any) error {
		if verb == "list" {
			return forbidden()
		}
		return nil
	})
	run(t, s, func(t *testing.T, m *Mirror) {
		for range 2 {
			if err := m.List(t.Context(), &corev1.ServiceList{}); !apierrors.IsForbidden(err) {
				t.Fatalf("List returns %v", err)
			}
		}
		expect(t, "lists", s.requests["list"].Load(), 1)
		s.respond(func(string, any) error { return nil })
		expectChange(t, m, true)
		expect(t, "the Services", services(t, m, ""), []string{"a/a"})
	})
}

func TestAFailedListIsTriedAgainAtOnce(t *testing.T) {
	s := newServer(service("a", "a"))
	s.respond(func(verb string, _ any) error {
		if verb == "list" {
			return apierrors.NewInternalError(errors.New("broken"))
		}
		return nil
	})
	run(t, s, func(t *testing.T, m *Mirror) {
		if err := m.List(t.Context(), &corev1.ServiceList{}); !apierrors.IsInternalError(err) {
			t.Fatalf("List returns %v", err)
		}
		s.respond(func(string, any) error { return nil })
		expect(t, "the Services", services(t, m, ""), []string{"a/a"})
	})
}

func TestALostConnection(t *testing.T) {
	s := newServer(service("a", "a"))
	run(t, s, func(t *testing.T, m *Mirror) {
		services(t, m, "")
		s.respond(func(string, any) error { return errors.New("connection refused") })
		expectChange(t, m, true)
		if err := m.Lost(); err == nil || err.Error() != "connection refused" {
			t.Fatalf("Lost returns %v", err)
		}
		expect(t, "the Services without connection", services(t, m, ""), []string{"a/a"})

		s.respond(func(string, any) error { return nil })
		expectChange(t, m, true)
		if err := m.Lost(); err != nil {
			t.Fatalf("Lost returns %v", err)
		}
		lists := s.requests["list"].Load()
		expect(t, "the Services", services(t, m, ""), []string{"a/a"})
		expect(t, "lists after the connection is back", s.requests["list"].Load()-lists, 1)
	})
}

func TestAKindThatCannotBeListedAnyLongerIsReported(t *testing.T) {
	s := newServer(service("a", "a"))
	run(t, s, func(t *testing.T, m *Mirror) {
		services(t, m, "")
		synctest.Wait()
		s.breakLists()
		<-time.After(3 * time.Minute)
		if err := m.Lost(); err == nil || !strings.Contains(err.Error(), "list the objects of kind Service: ") {
			t.Fatalf("Lost returns %v", err)
		}
		if err := s.Create(t.Context(), service("a", "new")); err != nil {
			t.Fatal(err)
		}
		s.respond(func(string, any) error { return nil })
		<-time.After(time.Minute)
		if err := m.Lost(); err != nil {
			t.Errorf("Lost returns %v", err)
		}
		expect(t, "the Services", services(t, m, ""), []string{"a/a", "a/new"})
	})
}

func TestListsWithoutAChangeAreNoChange(t *testing.T) {
	s := newServer(service("a", "a"))
	s.respond(func(verb string, _ any) error {
		if verb == "watch" {
			return forbidden()
		}
		return nil
	})
	run(t, s, func(t *testing.T, m *Mirror) {
		services(t, m, "")
		expectChange(t, m, false)
		if lists := s.requests["list"].Load(); lists < 3 {
			t.Errorf("%d lists in a minute by a user who may not watch", lists)
		}
		if err := s.Create(t.Context(), service("a", "new")); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, true)
	})
}

func TestUnusedWatchesEnd(t *testing.T) {
	s := newServer(service("a", "a"))
	run(t, s, func(t *testing.T, m *Mirror) {
		services(t, m, "a")
		<-time.After(maxUnused + time.Minute)
		if err := s.Create(t.Context(), service("a", "new")); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, false)
		expect(t, "the Services", services(t, m, "a"), []string{"a/a", "a/new"})
	})
}

func TestAUserWithoutPermissionsIsConnected(t *testing.T) {
	s := newServer()
	s.respond(func(string, any) error { return forbidden() })
	run(t, s, func(t *testing.T, m *Mirror) {
		expectChange(t, m, false)
		if err := m.Lost(); err != nil {
			t.Errorf("Lost returns %v", err)
		}
	})
}

func TestGetsAreRepeated(t *testing.T) {
	s := newServer(secret("first"))
	run(t, s, func(t *testing.T, m *Mirror) {
		get := func(name string) (*corev1.Secret, error) {
			var found corev1.Secret
			err := m.Get(t.Context(), client.ObjectKeyFromObject(secret(name)), &found)
			return &found, err
		}
		for range 2 {
			if _, err := get("first"); err != nil {
				t.Fatal(err)
			}
			if _, err := get("missing"); !apierrors.IsNotFound(err) {
				t.Fatalf("Get of a missing Secret returns %v", err)
			}
		}
		expect(t, "requests", s.requests["get"].Load(), 2)
		expectChange(t, m, false)

		if err := s.Create(t.Context(), secret("missing")); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, true)
		if _, err := get("missing"); err != nil {
			t.Error(err)
		}
		changed := secret("first")
		changed.Data = map[string][]byte{"tls.crt": []byte("new")}
		if err := s.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		expectChange(t, m, true)
		found, err := get("first")
		if err != nil || string(found.Data["tls.crt"]) != "new" {
			t.Errorf("Get returns %v, %v", found, err)
		}
	})
}

func TestForbiddenObjectsAreNotReadAllTheTime(t *testing.T) {
	s := newServer()
	s.respond(func(_ string, o any) error {
		if _, ok := o.(*corev1.Secret); ok {
			return forbidden()
		}
		return nil
	})
	run(t, s, func(t *testing.T, m *Mirror) {
		before := s.requests["get"].Load()
		for range 5 {
			if err := m.Get(t.Context(), client.ObjectKeyFromObject(secret("a")), &corev1.Secret{}); !apierrors.IsForbidden(err) {
				t.Fatalf("Get returns %v", err)
			}
			<-time.After(interval / 10)
		}
		if requests := s.requests["get"].Load() - before; requests > 2 { // one is the ping
			t.Errorf("%d requests for an object that the user may not read, want 1", requests)
		}
	})
}
