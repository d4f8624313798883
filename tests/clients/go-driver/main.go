// A driver on upstream's own helper (package kubeletplugin), a plain client of the PodResources service, and a device plugin. What they print is
// judged by ../run_driver.py and ../run_device_plugin.py.
//
//	driver run KUBECONFIG NODE ROOT CDI [INSTANCE]   four devices; a line for each thing that happens; ends with SIGTERM
//	driver plugin FOLDER                             three devices for the agent whose device-plugins folder that is
//	driver pods SOCKET                               "pod NAMESPACE/NAME CONTAINER CLAIM DRIVER/POOL/DEVICE ID …" a line
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const driverName = "go.example.com"

type driver struct {
	cdi    string
	output sync.Mutex
}

func (d *driver) say(format string, arguments ...any) {
	d.output.Lock()
	defer d.output.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

// writeCDI describes the claim's devices to the container runtime; one id for each of them.
func (d *driver) writeCDI(claim *resourceapi.ResourceClaim, names []string) error {
	type device map[string]any
	var devices []device
	for _, name := range names {
		devices = append(devices, device{"name": string(claim.UID) + "-" + name,
			"containerEdits": device{"env": []string{"GO_DEVICE_" + strings.ReplaceAll(name, "-", "_") + "=" + name}}})
	}
	spec, err := json.Marshal(device{"cdiVersion": "0.5.0", "kind": driverName + "/device", "devices": devices})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.cdi, driverName+"-"+string(claim.UID)+".json"), spec, 0o644)
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	var names []string
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		names = append(names, claim.Name)
		var result kubeletplugin.PrepareResult
		var prepared []string
		for _, allocated := range claim.Status.Allocation.Devices.Results {
			if allocated.Driver != driverName {
				continue
			}
			prepared = append(prepared, allocated.Device)
			result.Devices = append(result.Devices, kubeletplugin.Device{Requests: []string{allocated.Request}, PoolName: allocated.Pool,
				DeviceName: allocated.Device, CDIDeviceIDs: []string{driverName + "/device=" + string(claim.UID) + "-" + allocated.Device}})
		}
		if claim.Annotations["fail"] != "" {
			result = kubeletplugin.PrepareResult{Err: errors.New(claim.Annotations["fail"])}
		} else if err := d.writeCDI(claim, prepared); err != nil {
			result = kubeletplugin.PrepareResult{Err: err}
		}
		results[claim.UID] = result
	}
	d.say("prepare %s", strings.Join(names, " "))
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	var names []string
	results := map[types.UID]error{}
	for _, claim := range claims {
		names = append(names, claim.Name)
		err := os.Remove(filepath.Join(d.cdi, driverName+"-"+string(claim.UID)+".json"))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		results[claim.UID] = err
	}
	d.say("unprepare %s", strings.Join(names, " "))
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, msg string) {
	d.say("error %s: %v", msg, err)
}

func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	report := kubeletplugin.DeviceHealthReport{Devices: []kubeletplugin.DeviceHealth{
		{PoolName: "pool", DeviceName: "dev-0", Health: kubeletplugin.HealthStatusHealthy},
		{PoolName: "pool", DeviceName: "dev-1", Health: kubeletplugin.HealthStatusUnhealthy, Message: "too hot"}}}
	for {
		select {
		case reports <- report:
			d.say("health")
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

func run(kubeconfig, node, root, cdi, instance string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	data := filepath.Join(root, "plugins", driverName)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	d := &driver{cdi: cdi}
	d.say("starts")
	options := []kubeletplugin.Option{kubeletplugin.DriverName(driverName), kubeletplugin.NodeName(node), kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(root, "plugins_registry")), kubeletplugin.PluginDataDirectoryPath(data)}
	if instance != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(instance)))
	}
	helper, err := kubeletplugin.Start(ctx, d, options...)
	if err != nil {
		return err
	}
	// As soon as the node said so, whatever publishing waits for.
	go func() {
		for ctx.Err() == nil {
			if status := helper.RegistrationStatus(); status != nil && status.PluginRegistered {
				d.say("registered")
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var devices []resourceapi.Device
	for i := range 4 {
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("dev-%d", i)})
	}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		"pool": {Slices: []resourceslice.Slice{{Devices: devices}}}}}); err != nil {
		return err
	}
	d.say("published")
	<-ctx.Done()
	helper.Stop()
	d.say("stopped")
	return nil
}

func pods(socket string) error {
	connection, err := grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := podresources.NewPodResourcesListerClient(connection)
	list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return err
	}
	for _, pod := range list.PodResources {
		one, err := client.Get(ctx, &podresources.GetPodResourcesRequest{PodName: pod.Name, PodNamespace: pod.Namespace})
		if err != nil {
			return err
		}
		if one.PodResources.Name != pod.Name || len(one.PodResources.Containers) != len(pod.Containers) {
			return fmt.Errorf("Get and List differ for %s", pod.Name)
		}
		for _, container := range pod.Containers {
			for _, claim := range container.DynamicResources {
				for _, device := range claim.ClaimResources {
					fmt.Printf("pod %s/%s %s %s %s/%s/%s", pod.Namespace, pod.Name, container.Name, claim.ClaimName, device.DriverName,
						device.PoolName, device.DeviceName)
					for _, id := range device.CdiDevices {
						fmt.Printf(" %s", id.Name)
					}
					fmt.Println()
				}
			}
		}
	}
	_, err = client.Get(ctx, &podresources.GetPodResourcesRequest{PodName: "none", PodNamespace: "default"})
	fmt.Printf("get none: %v\n", err)
	_, err = client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	fmt.Printf("allocatable: %v\n", err)
	return nil
}

func main() {
	arguments := append(os.Args[1:], "", "", "", "", "", "")
	var err error
	switch arguments[0] {
	case "run":
		err = run(arguments[1], arguments[2], arguments[3], arguments[4], arguments[5])
	case "pods":
		err = pods(arguments[1])
	case "plugin":
		runPlugin(arguments[1])
	default:
		err = errors.New("usage: driver run KUBECONFIG NODE ROOT CDI [INSTANCE] | pods SOCKET | plugin FOLDER")
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
