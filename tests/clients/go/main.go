// client-go against a running dibs: "basics NAMESPACE" checks single requests and prints "ok CHECK" or "failed CHECK: WHY";
// "follow NAMESPACE" runs informers and a retrying watch over the configmaps of a namespace, prints each event as
// "WHO VERB NAME VERSION", and ends when a configmap named "end" appears. "encode" needs no server (encode.go). What it prints is judged by run.py.
// "roll NAMESPACE HOST:PORT,HOST:PORT" writes and watches while servers are restarted (roll.go), for ../cluster/rolling.py.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

type checks struct {
	ctx       context.Context
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

func expect(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: %v, expected %v", what, got, want)
	}
	return nil
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func (c *checks) lifeOfAnObject() error {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	made, err := maps.Create(c.ctx, configMap("go", map[string]string{"k": "v"}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	stale := made.DeepCopy()
	made.Data["more"] = "x"
	if _, err = maps.Update(c.ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err = maps.Update(c.ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("stale update: %v, expected a conflict", err)
	}
	if _, err = maps.Create(c.ctx, configMap("go", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("second create: %v, expected AlreadyExists", err)
	}
	if err = maps.Delete(c.ctx, "go", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err = maps.Get(c.ctx, "go", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("after the delete: %v, expected NotFound", err)
	}
	return nil
}

// speaksHTTP2 has watches and requests side by side on one connection.
func (c *checks) speaksHTTP2() error {
	config := rest.CopyConfig(c.config)
	var dialled atomic.Int32
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	answer, err := client.Get(config.Host + "/version")
	if err != nil {
		return err
	}
	answer.Body.Close()
	if err = expect("protocol", answer.Proto, "HTTP/2.0"); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	maps := kube.CoreV1().ConfigMaps(c.namespace)
	for range 50 {
		open, err := maps.Watch(c.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer open.Stop()
	}
	for range 20 {
		if _, err = maps.List(c.ctx, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return expect("connections", dialled.Load(), int32(1))
}

// retriesOnConflict has ten writers count to ten each on one object.
func (c *checks) retriesOnConflict() error {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	if _, err := maps.Create(c.ctx, configMap("counter", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	var writers sync.WaitGroup
	errs := make(chan error, 10)
	for writer := range 10 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for range 10 {
				backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1, Jitter: 1, Steps: 500}
				err := retry.RetryOnConflict(backoff, func() error {
					object, err := maps.Get(c.ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					if object.Data == nil {
						object.Data = map[string]string{}
					}
					object.Data[fmt.Sprint(writer)] += "x"
					_, err = maps.Update(c.ctx, object, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	writers.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	object, err := maps.Get(c.ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	total := 0
	for _, marks := range object.Data {
		total += len(marks)
	}
	return expect("counted", total, 100)
}

func (c *checks) patchesAndApply() error {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	if _, err := maps.Create(c.ctx, configMap("patched", map[string]string{"a": "1"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, patch := range []struct {
		kind types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"replace","path":"/data/a","value":"2"}]`},
		{types.MergePatchType, `{"data":{"b":"3"}}`},
		{types.StrategicMergePatchType, `{"data":{"c":"4"}}`},
	} {
		if _, err := maps.Patch(c.ctx, "patched", patch.kind, []byte(patch.body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", patch.kind, err)
		}
	}
	wanted := corev1apply.ConfigMap("patched", c.namespace).WithData(map[string]string{"d": "5"})
	object, err := maps.Apply(c.ctx, wanted, metav1.ApplyOptions{FieldManager: "go"})
	if err != nil {
		return err
	}
	if err := expect("data", object.Data, map[string]string{"a": "2", "b": "3", "c": "4", "d": "5"}); err != nil {
		return err
	}
	wanted.Data = map[string]string{"a": "9"}
	_, err = maps.Apply(c.ctx, wanted, metav1.ApplyOptions{FieldManager: "go"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".data.a") {
		return fmt.Errorf("apply over another's field: %v, expected a conflict over .data.a", err)
	}
	return nil
}

func (c *checks) pages() error {
	secrets := c.client.CoreV1().Secrets(c.namespace)
	for i := range 11 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", i)}}
		if _, err := secrets.Create(c.ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	count := 0
	lists := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return secrets.List(ctx, options)
	})
	lists.PageSize = 3
	err := lists.EachListItem(c.ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if one, _ := meta.Accessor(object); strings.HasPrefix(one.GetName(), "page-") {
			count++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return expect("items of all pages", count, 11)
}

func (c *checks) dynamicAndMetadata() error {
	plain, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dynamic"}}}
	if _, err := plain.Resource(resource).Namespace(c.namespace).Create(c.ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	partial, err := metadata.NewForConfig(c.config)
	if err != nil {
		return err
	}
	found, err := partial.Resource(resource).Namespace(c.namespace).Get(c.ctx, "dynamic", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("name", found.Name, "dynamic")
}

func (c *checks) discovery() error {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		if list.GroupVersion == appsv1.SchemeGroupVersion.String() {
			return nil
		}
	}
	return fmt.Errorf("no apps/v1 among %d lists", len(lists))
}

func (c *checks) scaleAndStatus() error {
	deployments := c.client.AppsV1().Deployments(c.namespace)
	replicas := int32(1)
	labels := map[string]string{"a": "b"}
	made, err := deployments.Create(c.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	scale, err := deployments.GetScale(c.ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 4
	if _, err = deployments.UpdateScale(c.ctx, "scaled", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	made.Status.Replicas = 2
	made.ResourceVersion = ""
	after, err := deployments.UpdateStatus(c.ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return expect("replicas", []int32{*after.Spec.Replicas, after.Status.Replicas}, []int32{4, 2})
}

func basics(config *rest.Config, namespace string) int {
	c := &checks{ctx: context.Background(), config: config, client: kubernetes.NewForConfigOrDie(config), namespace: namespace}
	failed := 0
	for _, check := range []struct {
		name string
		run  func() error
	}{
		{"life_of_an_object", c.lifeOfAnObject},
		{"speaks_http2", c.speaksHTTP2},
		{"retries_on_conflict", c.retriesOnConflict},
		{"patches_and_apply", c.patchesAndApply},
		{"pages", c.pages},
		{"dynamic_and_metadata", c.dynamicAndMetadata},
		{"discovery", c.discovery},
		{"scale_and_status", c.scaleAndStatus},
		{"claims_of_all_versions", c.claimsOfAllVersions},
		{"updates_of_all_versions", c.updatesOfAllVersions},
		{"slices_of_all_versions", c.slicesOfAllVersions},
		{"applies_of_all_versions", c.appliesOfAllVersions},
		{"other_kinds_of_all_versions", c.otherKindsOfAllVersions},
		{"classic_beside_new", c.classicBesideNew},
		{"device_status_by_many_drivers", c.deviceStatusByManyDrivers},
		{"pods_with_claims", c.podsWithClaims},
	} {
		if err := check.run(); err != nil {
			failed++
			fmt.Printf("failed %s: %v\n", check.name, err)
		} else {
			fmt.Printf("ok %s\n", check.name)
		}
	}
	return failed
}

// reporter prints events, and counts those of the object that ends the test.
type reporter struct {
	mutex sync.Mutex
	ends  map[string]chan struct{}
}

func (r *reporter) event(who, verb string, object metav1.Object) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Printf("%s %s %s %s\n", who, verb, object.GetName(), object.GetResourceVersion())
	if object.GetName() == "end" {
		close(r.ends[who])
	}
}

func (r *reporter) handler(who string) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.event(who, "ADDED", accessor(object)) },
		UpdateFunc: func(_, object any) { r.event(who, "MODIFIED", accessor(object)) },
		DeleteFunc: func(object any) {
			if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				fmt.Printf("%s MISSED %s -\n", who, gone.Key)
				return
			}
			r.event(who, "DELETED", accessor(object))
		},
	}
}

func accessor(object any) metav1.Object {
	one, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return one
}

// watchLists counts the requests that ask for the list as a stream.
type watchLists struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (w watchLists) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		w.count.Add(1)
	}
	return w.next.RoundTrip(request)
}

func follow(config *rest.Config, namespace string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var streamed atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchLists{next, &streamed} })
	client := kubernetes.NewForConfigOrDie(config)
	report := &reporter{ends: map[string]chan struct{}{
		"informer": make(chan struct{}), "metadata": make(chan struct{}), "watch": make(chan struct{})}}

	typed := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	maps := typed.Core().V1().ConfigMaps().Informer()
	must(maps.AddEventHandler(report.handler("informer")))
	typed.Start(ctx.Done())

	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	partial := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, namespace, nil)
	must(partial.ForResource(resource).Informer().AddEventHandler(report.handler("metadata")))
	partial.Start(ctx.Done())

	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println("failed list:", err)
		return 1
	}
	retrying, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
		}})
	if err != nil {
		fmt.Println("failed watch:", err)
		return 1
	}
	go func() {
		for event := range retrying.ResultChan() {
			if object, ok := event.Object.(*corev1.ConfigMap); ok {
				report.event("watch", string(event.Type), object)
			} else {
				fmt.Printf("watch %s - %v\n", event.Type, event.Object)
			}
		}
	}()
	typed.WaitForCacheSync(ctx.Done())
	partial.WaitForCacheSync(ctx.Done())
	fmt.Println("ready")

	for _, end := range report.ends {
		<-end
	}
	var lines []string
	for _, object := range maps.GetStore().List() {
		one := accessor(object)
		lines = append(lines, fmt.Sprintf("cache %s %s", one.GetName(), one.GetResourceVersion()))
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
	fmt.Printf("streamed-lists %d\n", streamed.Load())
	return 0
}

func must(_ cache.ResourceEventHandlerRegistration, err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	if os.Args[1] == "encode" {
		os.Exit(encode())
	}
	mode, namespace := os.Args[1], os.Args[2]
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Println("failed kubeconfig:", err)
		os.Exit(1)
	}
	config.QPS, config.Burst = 1000, 1000
	config.WarningHandler = rest.NoWarnings{} // older versions are deprecated; that is not what fails here
	if len(os.Args) > 3 && os.Args[3] == "protobuf" {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if mode == "basics" {
		os.Exit(basics(config, namespace))
	}
	if mode == "roll" {
		os.Exit(roll(config, namespace, os.Args[3]))
	}
	os.Exit(follow(config, namespace))
}
