// The sample API server of Kubernetes, as a program of the test: what runs behind an APIService.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/sample-apiserver/pkg/cmd/server"
)

func main() {
	options := server.NewWardleServerOptions(os.Stdout, os.Stderr)
	command := server.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)
	os.Exit(cli.Run(command))
}
