// The selectors and devices of bench/cel_bench.cc, asked with upstream's engine as the scheduler uses it: compile once,
// then one device after the other. Prints "NAME NANOSECONDS" per line, per device where the name ends with a number.
//
//	cel-go [SECONDS PER LINE]
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

var selectors = []struct{ name, expression string }{
	{"driver", `device.driver == "gpu.example.com"`},
	{"model_memory", `device.attributes["gpu.example.com"].model == "h200" && ` +
		`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`},
	{"version", `device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("570.100.0"))`},
	{"in_has", `device.attributes["gpu.example.com"].architecture in ["Hopper", "Blackwell"] && ` +
		`has(device.attributes["gpu.example.com"].mig)`},
	{"three", `device.attributes["gpu.example.com"].model == "h200" && ` +
		`device.attributes["gpu.example.com"].numaNode == 1 && ` +
		`device.attributes["gpu.example.com"].healthy`},
}

func text(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
func version(s string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{VersionValue: &s}
}
func integer(i int64) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: &i} }
func boolean(b bool) resourceapi.DeviceAttribute  { return resourceapi.DeviceAttribute{BoolValue: &b} }

func device(i int) cel.Device {
	model := i / 8 % 4
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"architecture":                    text([]string{"Ampere", "Hopper", "Hopper", "Blackwell"}[model]),
		"brand":                           text("Example"),
		"cudaComputeCapability":           version("9.0.0"),
		"driverVersion":                   version(fmt.Sprintf("570.%d.0", 80+i/64%40)),
		"healthy":                         boolean(i%50 != 0),
		"index":                           integer(int64(i % 8)),
		"model":                           text([]string{"a100", "h100", "h200", "b200"}[model]),
		"numaNode":                        integer(int64(i % 8 / 4)),
		"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%d", 10+i%8)),
		"type":                            text("gpu"),
		"uuid":                            text(fmt.Sprintf("GPU-18db0e85-99e9-c746-8531-%d", 100000000000+i)),
	}
	if i%3 == 0 {
		attributes["mig"] = boolean(true)
	}
	driver := "gpu.example.com"
	if i%10 == 9 {
		driver = "nic.example.com"
	}
	memory := []string{"40Gi", "80Gi", "141Gi", "180Gi"}[model]
	return cel.Device{
		Driver:     driver,
		Attributes: attributes,
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory":          {Value: resource.MustParse(memory)},
			"multiprocessors": {Value: resource.MustParse("132")},
		},
	}
}

// processorTime of the whole process: what garbage collection takes counts, waiting for other processes does not.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// nanoseconds of processor time for one call of work: the best of three rounds, since others only ever slow it down.
func nanoseconds(least time.Duration, work func()) float64 {
	best := math.MaxFloat64
	times := 1
	for rounds := 0; rounds < 3; {
		begin := processorTime()
		for range times {
			work()
		}
		taken := processorTime() - begin
		if taken < least {
			times *= 2
			continue
		}
		best = min(best, float64(taken.Nanoseconds())/float64(times))
		rounds++
	}
	return best
}

func main() {
	seconds := 0.1
	if len(os.Args) > 1 {
		given, err := strconv.ParseFloat(os.Args[1], 64)
		if err != nil {
			log.Fatal(err)
		}
		seconds = given
	}
	least := time.Duration(seconds * float64(time.Second))
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	for _, selector := range selectors {
		fmt.Printf("compile/%s %.0f\n", selector.name, nanoseconds(least, func() {
			if result := compiler.CompileCELExpression(selector.expression, cel.Options{}); result.Error != nil {
				log.Fatal(result.Error)
			}
		}))
	}
	ctx := context.Background()
	var devices []cel.Device
	for _, count := range []int{1, 1000, 100000} {
		// A large heap makes every collection of garbage dear, so it grows only now.
		for i := len(devices); i < count; i++ {
			devices = append(devices, device(i))
		}
		for _, selector := range selectors {
			compiled := compiler.CompileCELExpression(selector.expression, cel.Options{})
			per := nanoseconds(least, func() {
				for i := range devices {
					// Devices without an attribute are errors, here as there.
					_, _, _ = compiled.DeviceMatches(ctx, devices[i])
				}
			})
			fmt.Printf("scalar/%s/%d %.1f\n", selector.name, count, per/float64(count))
		}
	}
}
