// A container runtime that only pretends, for a kubelet under test: upstream's own fake, at the socket that is named.
// Built inside of a source tree of Kubernetes (../run_upstream.py).
package main

import (
	"os"
	"os/signal"

	"k8s.io/cri-client/pkg/fake"
)

func main() {
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + os.Args[1]); err != nil {
		panic(err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
}
