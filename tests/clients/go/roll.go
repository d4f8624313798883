package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// What a run did, printed as JSON. No answer of a server may be a problem that client-go would have retried.
type rolled struct {
	Requests, Sent, Refused, Added, Deleted int64
	Problems                                []string
}

type roller struct {
	mutex    sync.Mutex
	result   rolled
	changes  map[string]*[3]int // by name: how often it came, changed and went in the informer
	created  map[string]bool    // whether it was deleted again
	requests atomic.Int64
	sent     atomic.Int64
	refused  atomic.Int64
}

func (r *roller) problem(format string, values ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.result.Problems = append(r.result.Problems, fmt.Sprintf(format, values...))
}

func (r *roller) change(object any, what int) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		r.problem("the informer missed how %s went", last.Key)
		object = last.Obj
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name := object.(*corev1.ConfigMap).Name
	if r.changes[name] == nil {
		r.changes[name] = &[3]int{}
	}
	r.changes[name][what]++
}

type counted struct {
	next http.RoundTripper
	sent *atomic.Int64
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.next.RoundTrip(request)
}

// All servers under one name, as Go dials a name with several addresses: the next where one does not answer.
func dialAny(addresses []string) func(context.Context, string, string) (net.Conn, error) {
	var turn atomic.Int64
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var failed error
		first := int(turn.Add(1))
		for i := range addresses {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, addresses[(first+i)%len(addresses)])
			if err == nil {
				return connection, nil
			}
			failed = err
		}
		return nil, failed
	}
}

// A connection that nobody takes is for the caller to try again: nothing was sent. All else is client-go's.
func attempt[T any](r *roller, call func() (T, error)) (T, error) {
	for {
		r.requests.Add(1)
		value, err := call()
		if err == nil || !utilnet.IsConnectionRefused(err) {
			return value, err
		}
		r.refused.Add(1)
		time.Sleep(100 * time.Millisecond)
	}
}

func (r *roller) life(ctx context.Context, maps corev1client.ConfigMapInterface, name string, remove bool) error {
	made, err := attempt(r, func() (*corev1.ConfigMap, error) {
		return maps.Create(ctx, configMap(name, map[string]string{"turn": "1"}), metav1.CreateOptions{})
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	made.Data["turn"] = "2"
	if _, err = attempt(r, func() (*corev1.ConfigMap, error) { return maps.Update(ctx, made, metav1.UpdateOptions{}) }); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	read, err := attempt(r, func() (*corev1.ConfigMap, error) { return maps.Get(ctx, name, metav1.GetOptions{}) })
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if read.Data["turn"] != "2" {
		return errors.New("an older state was read than was written")
	}
	if remove {
		if _, err = attempt(r, func() (any, error) { return nil, maps.Delete(ctx, name, metav1.DeleteOptions{}) }); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.created[name] = remove
	return nil
}

// What the informer has shown of each object that was made; "" when it was all and once.
func (r *roller) missed() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.result.Added, r.result.Deleted = 0, 0
	for name, removed := range r.created {
		want := [3]int{1, 1, 0}
		if removed {
			want[2] = 1
			r.result.Deleted++
		}
		r.result.Added++
		if got := r.changes[name]; got == nil || *got != want {
			return fmt.Sprintf("the informer showed %s come, change and go %v times, expected %v", name, got, want)
		}
	}
	return ""
}

// Writes and reads with client-go on all servers until standard input ends, with an informer beside it.
func roll(config *rest.Config, namespace string, addresses string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &roller{changes: map[string]*[3]int{}, created: map[string]bool{}}
	config.Dial = dialAny(strings.Split(addresses, ","))
	watching := kubernetes.NewForConfigOrDie(config)
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &r.sent} })
	client := kubernetes.NewForConfigOrDie(config)

	factory := informers.NewSharedInformerFactoryWithOptions(watching, 0, informers.WithNamespace(namespace))
	must(factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.change(object, 0) },
		UpdateFunc: func(_, object any) { r.change(object, 1) },
		DeleteFunc: func(object any) { r.change(object, 2) },
	}))
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	fmt.Println("ready")

	var ending atomic.Bool
	var workers sync.WaitGroup
	for number := range 4 {
		workers.Go(func() {
			for turn := 0; !ending.Load(); turn++ {
				name := fmt.Sprintf("g%d-%d", number, turn)
				if err := r.life(ctx, client.CoreV1().ConfigMaps(namespace), name, turn%2 == 0); err != nil {
					r.problem("%s: %v", name, err)
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	ending.Store(true)
	workers.Wait()
	why := r.missed()
	for end := time.Now().Add(60 * time.Second); why != "" && time.Now().Before(end); why = r.missed() {
		time.Sleep(100 * time.Millisecond)
	}
	if why != "" {
		r.problem("%s", why)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.result.Requests, r.result.Sent, r.result.Refused = r.requests.Load(), r.sent.Load(), r.refused.Load()
	text, _ := json.Marshal(r.result)
	fmt.Println(string(text))
	return 0
}
