// An operator as people write them: configuration of the pod it runs in, one of its replicas leads by a Lease, an informer tells of objects,
// and what was done for each is written into it and told by an Event. It reports each step as a line.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func fail(what string, err error) {
	fmt.Println("failed", what+":", err)
	os.Exit(1)
}

// serve makes every ConfigMap that asks for it say who served it.
func serve(ctx context.Context, client kubernetes.Interface, namespace, identity string) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "operator"})
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "wants=service" }))
	handle := func(object interface{}) {
		wish := object.(*corev1.ConfigMap)
		if wish.Data["served-by"] != "" {
			return
		}
		next := wish.DeepCopy()
		next.Data = map[string]string{"served-by": identity}
		if _, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			fmt.Println("not served:", err)
			return
		}
		recorder.Event(wish, corev1.EventTypeNormal, "Served", "by "+identity)
		fmt.Println("served", wish.Name)
	}
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, object interface{}) { handle(object) },
	}); err != nil {
		fail("handler", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	fmt.Println("follows")
	<-ctx.Done()
	broadcaster.Shutdown()
}

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fail("configuration", err)
	}
	fmt.Println("server", config.Host)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail("client", err)
	}
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		fail("namespace", err)
	}
	namespace := strings.TrimSpace(string(text))
	identity, err := os.Hostname()
	if err != nil {
		fail("name", err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "operator", Namespace: namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 6 * time.Second,
		RenewDeadline: 4 * time.Second,
		RetryPeriod:   time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leads")
				serve(ctx, client, namespace, identity)
			},
			OnStoppedLeading: func() { fmt.Println("stops") },
			OnNewLeader:      func(leader string) { fmt.Println("leader", leader) },
		},
	})
}
