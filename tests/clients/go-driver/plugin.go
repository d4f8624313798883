package main

import (
	"context"
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
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resourceName = "example.com/thing"
	endpoint     = "thing.sock"
)

// plugin has three things; SIGUSR1 makes the last one ill, or well again.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	folder  string
	output  sync.Mutex
	changed chan struct{}
	ill     bool
	state   sync.Mutex
}

func (p *plugin) say(format string, arguments ...any) {
	p.output.Lock()
	defer p.output.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

func (p *plugin) devices() []*deviceplugin.Device {
	p.state.Lock()
	defer p.state.Unlock()
	var all []*deviceplugin.Device
	for _, id := range []string{"a", "b", "c"} {
		health := deviceplugin.Healthy
		if id == "c" && p.ill {
			health = deviceplugin.Unhealthy
		}
		all = append(all, &deviceplugin.Device{ID: id, Health: health})
	}
	return all
}

func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	for {
		if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: p.devices()}); err != nil {
			return err
		}
		select {
		case <-p.changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetPreferredAllocation wants the last ones in the alphabet.
func (p *plugin) GetPreferredAllocation(_ context.Context, request *deviceplugin.PreferredAllocationRequest) (*deviceplugin.PreferredAllocationResponse, error) {
	answer := &deviceplugin.PreferredAllocationResponse{}
	for _, one := range request.ContainerRequests {
		best := map[string]bool{}
		for _, id := range one.MustIncludeDeviceIDs {
			best[id] = true
		}
		for _, id := range []string{"c", "b", "a"} {
			for _, available := range one.AvailableDeviceIDs {
				if available == id && len(best) < int(one.AllocationSize) {
					best[id] = true
				}
			}
		}
		var ids []string
		for id := range best {
			ids = append(ids, id)
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

func (p *plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	answer := &deviceplugin.AllocateResponse{}
	for _, one := range request.ContainerRequests {
		things := strings.Join(one.DevicesIds, "")
		p.say("allocate %d", len(one.DevicesIds))
		file := filepath.Join(p.folder, "thing")
		if err := os.WriteFile(file, []byte("of the plugin\n"), 0o644); err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerAllocateResponse{
			Envs:        map[string]string{"THINGS": things},
			Mounts:      []*deviceplugin.Mount{{ContainerPath: "/thing", HostPath: file, ReadOnly: true}},
			Devices:     []*deviceplugin.DeviceSpec{{ContainerPath: "/dev/thing", HostPath: "/dev/zero", Permissions: "r"}},
			Annotations: map[string]string{"things": things},
		})
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(_ context.Context, request *deviceplugin.PreStartContainerRequest) (*deviceplugin.PreStartContainerResponse, error) {
	p.say("prestart %d", len(request.DevicesIds))
	return &deviceplugin.PreStartContainerResponse{}, nil
}

// serve offers the devices until its socket is gone: an agent that starts removes all of them.
func (p *plugin) serve() error {
	at := filepath.Join(p.folder, endpoint)
	os.Remove(at)
	listener, err := net.Listen("unix", at)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	connection, err := grpc.NewClient("unix:"+filepath.Join(p.folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := deviceplugin.NewRegistrationClient(connection).Register(deadline, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: endpoint, ResourceName: resourceName,
		Options: &deviceplugin.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}}); err != nil {
		return err
	}
	p.say("registered")
	for {
		if _, err := os.Stat(at); err != nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func runPlugin(folder string) {
	p := &plugin{folder: folder, changed: make(chan struct{}, 1)}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			p.state.Lock()
			p.ill = !p.ill
			p.state.Unlock()
			p.changed <- struct{}{}
		}
	}()
	for {
		if err := p.serve(); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}
