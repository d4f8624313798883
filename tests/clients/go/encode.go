package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// encode reads a line of base64 for each object in JSON and writes one for its protobuf, as a kube-apiserver stores it; an empty one for a
// kind that it does not know.
func encode() int {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		var out bytes.Buffer
		if object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil); err == nil {
			object.GetObjectKind().SetGroupVersionKind(*kind)
			if err := serializer.Encode(object, &out); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		fmt.Println(base64.StdEncoding.EncodeToString(out.Bytes()))
	}
}
