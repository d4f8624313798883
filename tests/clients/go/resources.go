// resource.k8s.io through the generated clients of every version at once, on the same objects.
package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	resourcev1apply "k8s.io/client-go/applyconfigurations/resource/v1"
	resourcev1beta1apply "k8s.io/client-go/applyconfigurations/resource/v1beta1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	driver        = "gpu.example.com"
	watchDeadline = 30 * time.Second
)

// claimView is ResourceClaims in one version; what it reads it tells in one line, the same in all versions.
type claimView struct {
	version  string
	create   func(ctx context.Context, name string) error
	get      func(ctx context.Context, name string) (runtime.Object, error)
	list     func(ctx context.Context) ([]runtime.Object, error)
	watch    func(ctx context.Context) (watch.Interface, error)
	allocate func(ctx context.Context, name, device string) error
	label    func(object runtime.Object, key string) error
}

func claimLine(name, class string, count int64, tolerations int, devices []string, labels map[string]string) string {
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return fmt.Sprintf("%s class=%s count=%d tolerations=%d devices=%s labels=%s", name, class, count, tolerations,
		strings.Join(devices, ","), strings.Join(keys, ","))
}

func tell(object runtime.Object) string {
	var devices []string
	switch c := object.(type) {
	case *resourcev1.ResourceClaim:
		if c.Status.Allocation != nil {
			for _, one := range c.Status.Allocation.Devices.Results {
				devices = append(devices, one.Device)
			}
		}
		exactly := c.Spec.Devices.Requests[0].Exactly
		return claimLine(c.Name, exactly.DeviceClassName, exactly.Count, len(exactly.Tolerations), devices, c.Labels)
	case *resourcev1beta2.ResourceClaim:
		if c.Status.Allocation != nil {
			for _, one := range c.Status.Allocation.Devices.Results {
				devices = append(devices, one.Device)
			}
		}
		exactly := c.Spec.Devices.Requests[0].Exactly
		return claimLine(c.Name, exactly.DeviceClassName, exactly.Count, len(exactly.Tolerations), devices, c.Labels)
	case *resourcev1beta1.ResourceClaim:
		if c.Status.Allocation != nil {
			for _, one := range c.Status.Allocation.Devices.Results {
				devices = append(devices, one.Device)
			}
		}
		request := c.Spec.Devices.Requests[0]
		return claimLine(c.Name, request.DeviceClassName, request.Count, len(request.Tolerations), devices, c.Labels)
	}
	return fmt.Sprintf("not a claim: %T", object)
}

func claimViews(client kubernetes.Interface, namespace string) []claimView {
	v1 := client.ResourceV1().ResourceClaims(namespace)
	v1beta2 := client.ResourceV1beta2().ResourceClaims(namespace)
	v1beta1 := client.ResourceV1beta1().ResourceClaims(namespace)
	all := metav1.ListOptions{LabelSelector: "made-by"}
	made := func(name, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"made-by": version}}
	}
	return []claimView{
		{
			version: "v1",
			create: func(ctx context.Context, name string) error {
				_, err := v1.Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: made(name, "v1"),
					Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
						Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: driver,
							Tolerations: []resourcev1.DeviceToleration{{Key: "hot", Operator: resourcev1.DeviceTolerationOpExists}}}}}}}},
					metav1.CreateOptions{})
				return err
			},
			get: func(ctx context.Context, name string) (runtime.Object, error) {
				return v1.Get(ctx, name, metav1.GetOptions{})
			},
			list: func(ctx context.Context) ([]runtime.Object, error) {
				list, err := v1.List(ctx, all)
				return pointers(list.Items), err
			},
			watch: func(ctx context.Context) (watch.Interface, error) { return v1.Watch(ctx, all) },
			allocate: func(ctx context.Context, name, device string) error {
				claim, err := v1.Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
						Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: "las1", Device: device}}}}
					_, err = v1.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
				}
				return err
			},
			label: func(object runtime.Object, key string) error {
				claim := object.(*resourcev1.ResourceClaim)
				claim.Labels[key] = "yes"
				_, err := v1.Update(context.Background(), claim, metav1.UpdateOptions{})
				return err
			},
		},
		{
			version: "v1beta2",
			create: func(ctx context.Context, name string) error {
				_, err := v1beta2.Create(ctx, &resourcev1beta2.ResourceClaim{ObjectMeta: made(name, "v1beta2"),
					Spec: resourcev1beta2.ResourceClaimSpec{Devices: resourcev1beta2.DeviceClaim{Requests: []resourcev1beta2.DeviceRequest{{Name: "gpu",
						Exactly: &resourcev1beta2.ExactDeviceRequest{DeviceClassName: driver,
							Tolerations: []resourcev1beta2.DeviceToleration{{Key: "hot", Operator: resourcev1beta2.DeviceTolerationOpExists}}}}}}}},
					metav1.CreateOptions{})
				return err
			},
			get: func(ctx context.Context, name string) (runtime.Object, error) {
				return v1beta2.Get(ctx, name, metav1.GetOptions{})
			},
			list: func(ctx context.Context) ([]runtime.Object, error) {
				list, err := v1beta2.List(ctx, all)
				return pointers(list.Items), err
			},
			watch: func(ctx context.Context) (watch.Interface, error) { return v1beta2.Watch(ctx, all) },
			allocate: func(ctx context.Context, name, device string) error {
				claim, err := v1beta2.Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					claim.Status.Allocation = &resourcev1beta2.AllocationResult{Devices: resourcev1beta2.DeviceAllocationResult{
						Results: []resourcev1beta2.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: "las1", Device: device}}}}
					_, err = v1beta2.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
				}
				return err
			},
			label: func(object runtime.Object, key string) error {
				claim := object.(*resourcev1beta2.ResourceClaim)
				claim.Labels[key] = "yes"
				_, err := v1beta2.Update(context.Background(), claim, metav1.UpdateOptions{})
				return err
			},
		},
		{
			version: "v1beta1",
			create: func(ctx context.Context, name string) error {
				_, err := v1beta1.Create(ctx, &resourcev1beta1.ResourceClaim{ObjectMeta: made(name, "v1beta1"),
					Spec: resourcev1beta1.ResourceClaimSpec{Devices: resourcev1beta1.DeviceClaim{Requests: []resourcev1beta1.DeviceRequest{{Name: "gpu",
						DeviceClassName: driver,
						Tolerations:     []resourcev1beta1.DeviceToleration{{Key: "hot", Operator: resourcev1beta1.DeviceTolerationOpExists}}}}}}},
					metav1.CreateOptions{})
				return err
			},
			get: func(ctx context.Context, name string) (runtime.Object, error) {
				return v1beta1.Get(ctx, name, metav1.GetOptions{})
			},
			list: func(ctx context.Context) ([]runtime.Object, error) {
				list, err := v1beta1.List(ctx, all)
				return pointers(list.Items), err
			},
			watch: func(ctx context.Context) (watch.Interface, error) { return v1beta1.Watch(ctx, all) },
			allocate: func(ctx context.Context, name, device string) error {
				claim, err := v1beta1.Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					claim.Status.Allocation = &resourcev1beta1.AllocationResult{Devices: resourcev1beta1.DeviceAllocationResult{
						Results: []resourcev1beta1.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: "las1", Device: device}}}}
					_, err = v1beta1.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
				}
				return err
			},
			label: func(object runtime.Object, key string) error {
				claim := object.(*resourcev1beta1.ResourceClaim)
				claim.Labels[key] = "yes"
				_, err := v1beta1.Update(context.Background(), claim, metav1.UpdateOptions{})
				return err
			},
		},
	}
}

// pointers gives the items of a typed list as objects.
func pointers[T any, P interface {
	*T
	runtime.Object
}](items []T) []runtime.Object {
	var out []runtime.Object
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}

// claimsOfAllVersions has each version make claims, another one allocate them, all at once, while all three watch.
func (c *checks) claimsOfAllVersions() error {
	const each = 10
	ctx, cancel := context.WithTimeout(c.ctx, watchDeadline)
	defer cancel()
	views := claimViews(c.client, c.namespace)
	results := make(chan error, 2*len(views))
	// A watch has seen enough when it has seen every claim allocated.
	for _, view := range views {
		stream, err := view.watch(ctx)
		if err != nil {
			return fmt.Errorf("watch in %s: %w", view.version, err)
		}
		go func() {
			defer stream.Stop()
			allocated := map[string]bool{}
			for len(allocated) < each*len(views) {
				event, open := <-stream.ResultChan()
				if !open {
					results <- fmt.Errorf("watch in %s ended with %d of %d claims", view.version, len(allocated), each*len(views))
					return
				}
				if line := tell(event.Object); strings.Contains(line, "devices=gpu-") {
					allocated[strings.Fields(line)[0]] = true
				} else if strings.HasPrefix(line, "not a claim") {
					results <- fmt.Errorf("watch in %s: %s %v", view.version, event.Type, event.Object)
					return
				}
			}
			results <- nil
		}()
	}
	for i, view := range views {
		other := views[(i+1)%len(views)]
		go func() {
			for n := range each {
				name := fmt.Sprintf("%s-%d", view.version, n)
				if err := view.create(ctx, name); err != nil {
					results <- fmt.Errorf("create in %s: %w", view.version, err)
					return
				}
				if err := other.allocate(ctx, name, fmt.Sprintf("gpu-%d", each*i+n)); err != nil {
					results <- fmt.Errorf("allocate in %s: %w", other.version, err)
					return
				}
			}
			results <- nil
		}()
	}
	var failures []error
	for range 2 * len(views) {
		failures = append(failures, <-results)
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	var lists []string
	for _, view := range views {
		items, err := view.list(ctx)
		if err != nil {
			return err
		}
		var lines []string
		for _, item := range items {
			lines = append(lines, tell(item))
		}
		lists = append(lists, strings.Join(lines, "\n"))
	}
	first := fmt.Sprintf("v1-0 class=%s count=1 tolerations=1 devices=gpu-0 labels=made-by\n", driver)
	if !strings.HasPrefix(lists[0], first) || strings.Count(lists[0], "\n") != each*len(views)-1 {
		return fmt.Errorf("list in v1: %s", lists[0])
	}
	return errors.Join(expect("list in v1beta2", lists[1], lists[0]), expect("list in v1beta1", lists[2], lists[0]))
}

// updatesOfAllVersions writes one claim through each version in turn: versions of the object are the same for all, and nothing is lost.
func (c *checks) updatesOfAllVersions() error {
	views := claimViews(c.client, c.namespace)
	if err := views[0].create(c.ctx, "shared"); err != nil {
		return err
	}
	for _, view := range views {
		object, err := view.get(c.ctx, "shared")
		if err != nil {
			return err
		}
		stale := object.DeepCopyObject()
		if err := view.label(object, "via-"+view.version); err != nil {
			return fmt.Errorf("update in %s: %w", view.version, err)
		}
		if err := view.label(stale, "late"); !apierrors.IsConflict(err) {
			return fmt.Errorf("stale update in %s: %v, expected a conflict", view.version, err)
		}
	}
	for _, view := range views {
		object, err := view.get(c.ctx, "shared")
		if err != nil {
			return err
		}
		want := fmt.Sprintf("shared class=%s count=1 tolerations=1 devices= labels=made-by,via-v1,via-v1beta1,via-v1beta2", driver)
		if err := expect("read in "+view.version, tell(object), want); err != nil {
			return err
		}
	}
	// The devices of one claim are refused to another, whatever the versions.
	if err := views[0].allocate(c.ctx, "shared", "gpu-shared"); err != nil {
		return err
	}
	for _, view := range views {
		name := "second-" + view.version
		if err := view.create(c.ctx, name); err != nil {
			return err
		}
		err := view.allocate(c.ctx, name, "gpu-shared")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.namespace+"/shared") {
			return fmt.Errorf("a device twice, in %s: %v, expected a refusal that names the other claim", view.version, err)
		}
	}
	return nil
}

func deviceLine(model *string, memory resource.Quantity, taints int) string {
	return fmt.Sprint(*model, " ", memory.String(), " ", taints)
}

// slicesOfAllVersions publishes in v1, follows with informers of all three, and updates in v1beta1.
func (c *checks) slicesOfAllVersions() error {
	ctx, cancel := context.WithTimeout(c.ctx, watchDeadline)
	defer cancel()
	seen := make(chan string, 100)
	factory := informers.NewSharedInformerFactory(c.client, 0)
	report := func(version string, describe func(any) string) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { seen <- version + " " + describe(object) },
			UpdateFunc: func(_, object any) { seen <- version + " " + describe(object) },
		}
	}
	must(factory.Resource().V1().ResourceSlices().Informer().AddEventHandler(report("v1", func(object any) string {
		device := object.(*resourcev1.ResourceSlice).Spec.Devices[0]
		return deviceLine(device.Attributes["model"].StringValue, device.Capacity["memory"].Value, len(device.Taints))
	})))
	must(factory.Resource().V1beta2().ResourceSlices().Informer().AddEventHandler(report("v1beta2", func(object any) string {
		device := object.(*resourcev1beta2.ResourceSlice).Spec.Devices[0]
		return deviceLine(device.Attributes["model"].StringValue, device.Capacity["memory"].Value, len(device.Taints))
	})))
	must(factory.Resource().V1beta1().ResourceSlices().Informer().AddEventHandler(report("v1beta1", func(object any) string {
		device := object.(*resourcev1beta1.ResourceSlice).Spec.Devices[0].Basic
		return deviceLine(device.Attributes["model"].StringValue, device.Capacity["memory"].Value, len(device.Taints))
	})))
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	await := func(what string) error {
		missing := map[string]bool{"v1 " + what: true, "v1beta2 " + what: true, "v1beta1 " + what: true}
		for len(missing) > 0 {
			select {
			case line := <-seen:
				delete(missing, line)
			case <-ctx.Done():
				return fmt.Errorf("informers did not see %v", missing)
			}
		}
		return nil
	}
	model, node := "a100", "las1"
	_, err := c.client.ResourceV1().ResourceSlices().Create(ctx, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "las1"},
		Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: "las1", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}},
				Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
				Taints:     []resourcev1.DeviceTaint{{Key: "hot", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := await("a100 80Gi 1"); err != nil {
		return err
	}
	beta, err := c.client.ResourceV1beta1().ResourceSlices().Get(ctx, "las1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed := "h100"
	beta.Spec.Devices[0].Basic.Attributes["model"] = resourcev1beta1.DeviceAttribute{StringValue: &changed}
	if beta, err = c.client.ResourceV1beta1().ResourceSlices().Update(ctx, beta, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := await("h100 80Gi 1"); err != nil {
		return err
	}
	list, err := c.client.ResourceV1beta2().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + driver + ",spec.nodeName=las1"})
	if err != nil {
		return err
	}
	return errors.Join(expect("generation", beta.Generation, int64(2)), expect("slices of the driver", len(list.Items), 1))
}

// appliesOfAllVersions has one manager apply in an old version and then in the new one: it is still one manager.
func (c *checks) appliesOfAllVersions() error {
	options := metav1.ApplyOptions{FieldManager: "go"}
	_, err := c.client.ResourceV1beta1().ResourceClaims(c.namespace).Apply(c.ctx, resourcev1beta1apply.ResourceClaim("applied", c.namespace).
		WithSpec(resourcev1beta1apply.ResourceClaimSpec().WithDevices(resourcev1beta1apply.DeviceClaim().
			WithRequests(resourcev1beta1apply.DeviceRequest().WithName("gpu").WithDeviceClassName(driver)))), options)
	if err != nil {
		return err
	}
	claim, err := c.client.ResourceV1().ResourceClaims(c.namespace).Apply(c.ctx, resourcev1apply.ResourceClaim("applied", c.namespace).
		WithLabels(map[string]string{"a": "b"}).
		WithSpec(resourcev1apply.ResourceClaimSpec().WithDevices(resourcev1apply.DeviceClaim().
			WithRequests(resourcev1apply.DeviceRequest().WithName("gpu").
				WithExactly(resourcev1apply.ExactDeviceRequest().WithDeviceClassName(driver))))), options)
	if err != nil {
		return err
	}
	if err := expect("managers", len(claim.ManagedFields), 1); err != nil {
		return err
	}
	return expect("version of the manager", claim.ManagedFields[0].APIVersion, "resource.k8s.io/v1")
}

// otherKindsOfAllVersions makes a class, a template and a taint rule in one version each and reads them in the others.
func (c *checks) otherKindsOfAllVersions() error {
	expression := `device.driver == "gpu.example.com"`
	_, err := c.client.ResourceV1beta1().DeviceClasses().Create(c.ctx, &resourcev1beta1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourcev1beta1.DeviceClassSpec{Selectors: []resourcev1beta1.DeviceSelector{
			{CEL: &resourcev1beta1.CELDeviceSelector{Expression: expression}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	class, err := c.client.ResourceV1().DeviceClasses().Get(c.ctx, driver, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("selector", class.Spec.Selectors[0].CEL.Expression, expression); err != nil {
		return err
	}
	_, err = c.client.ResourceV1beta2().ResourceClaimTemplates(c.namespace).Create(c.ctx, &resourcev1beta2.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Spec: resourcev1beta2.ResourceClaimTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: resourcev1beta2.ResourceClaimSpec{Devices: resourcev1beta2.DeviceClaim{Requests: []resourcev1beta2.DeviceRequest{{Name: "gpu",
				FirstAvailable: []resourcev1beta2.DeviceSubRequest{{Name: "big", DeviceClassName: driver}}}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	template, err := c.client.ResourceV1beta1().ResourceClaimTemplates(c.namespace).Get(c.ctx, "template", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("subrequest", template.Spec.Spec.Devices.Requests[0].FirstAvailable[0].Name, "big"); err != nil {
		return err
	}
	device := "gpu-0"
	_, err = c.client.ResourceV1alpha3().DeviceTaintRules().Create(c.ctx, &resourcev1alpha3.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "broken"},
		Spec: resourcev1alpha3.DeviceTaintRuleSpec{DeviceSelector: &resourcev1alpha3.DeviceTaintSelector{Device: &device},
			Taint: resourcev1alpha3.DeviceTaint{Key: "broken", Effect: resourcev1alpha3.DeviceTaintEffectNoExecute}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	rule, err := c.client.ResourceV1beta2().DeviceTaintRules().Get(c.ctx, "broken", metav1.GetOptions{})
	if err != nil {
		return err
	}
	newest, err := c.client.ResourceV1().DeviceTaintRules().Get(c.ctx, "broken", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return errors.Join(expect("device", *rule.Spec.DeviceSelector.Device, device), expect("taint", newest.Spec.Taint.Key, "broken"))
}

// classicBesideNew reads and writes a claim of v1 through v1alpha2, which has no generated client any more.
func (c *checks) classicBesideNew() error {
	views := claimViews(c.client, c.namespace)
	if err := views[0].create(c.ctx, "classic"); err != nil {
		return err
	}
	plain, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	claims := plain.Resource(schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1alpha2", Resource: "resourceclaims"}).
		Namespace(c.namespace)
	object, err := claims.Get(c.ctx, "classic", metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.SetLabels(map[string]string{"made-by": "v1", "via-v1alpha2": "yes"})
	if _, err = claims.Update(c.ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	after, err := views[0].get(c.ctx, "classic")
	if err != nil {
		return err
	}
	want := fmt.Sprintf("classic class=%s count=1 tolerations=1 devices= labels=made-by,via-v1alpha2", driver)
	return expect("read in v1", tell(after), want)
}

// deviceStatusByManyDrivers has drivers report on their devices at once, each by server-side apply of its own entry.
func (c *checks) deviceStatusByManyDrivers() error {
	views := claimViews(c.client, c.namespace)
	if err := views[0].create(c.ctx, "reported"); err != nil {
		return err
	}
	claims := c.client.ResourceV1().ResourceClaims(c.namespace)
	claim, err := claims.Get(c.ctx, "reported", metav1.GetOptions{})
	if err != nil {
		return err
	}
	const drivers = 6
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	for i := range drivers {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: fmt.Sprintf("d%d.example.com", i), Pool: "p", Device: "d"})
	}
	if _, err = claims.UpdateStatus(c.ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	var writers sync.WaitGroup
	failures := make([]error, drivers)
	for i := range drivers {
		writers.Add(1)
		go func() {
			defer writers.Done()
			body := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"reported"},"status":{"devices":[`+
				`{"driver":"d%d.example.com","pool":"p","device":"d","networkData":{"interfaceName":"eth%d"}}]}}`, i, i)
			_, failures[i] = claims.Patch(c.ctx, "reported", types.ApplyPatchType, []byte(body),
				metav1.PatchOptions{FieldManager: fmt.Sprint("driver-", i)}, "status")
		}()
	}
	writers.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	beta, err := c.client.ResourceV1beta1().ResourceClaims(c.namespace).Get(c.ctx, "reported", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("devices reported on", len(beta.Status.Devices), drivers)
}

// podsWithClaims checks that claims of pods and their statuses come through whole.
func (c *checks) podsWithClaims() error {
	if _, err := c.client.CoreV1().ServiceAccounts(c.namespace).Create(c.ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	template := "template"
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(c.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}},
			Containers: []corev1.Container{{Name: "c", Image: "i",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu", Request: "one"}}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made := "train-gpu-x"
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &made}}
	pod, err = c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return errors.Join(expect("claim", *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, made),
		expect("request", pod.Spec.Containers[0].Resources.Claims[0].Request, "one"))
}
