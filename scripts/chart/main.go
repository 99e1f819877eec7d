// Decodes rendered manifests of Kubernetes strictly into the types of its API: unknown and doubled members are errors, as are kinds that
// nothing here knows. Kinds of other projects (cert-manager, the Prometheus operator) are counted, not decoded.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	reader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var known = map[string]func() any{
	"apps/v1 Deployment":                 func() any { return &apps.Deployment{} },
	"apps/v1 StatefulSet":                func() any { return &apps.StatefulSet{} },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":      func() any { return &policy.PodDisruptionBudget{} },
	"v1 ConfigMap":                       func() any { return &core.ConfigMap{} },
	"v1 Service":                         func() any { return &core.Service{} },
}

var others = map[string]bool{
	"cert-manager.io/v1 Certificate":          true,
	"monitoring.coreos.com/v1 PrometheusRule": true,
	"monitoring.coreos.com/v1 ServiceMonitor": true,
}

func main() {
	decoded, passed := 0, 0
	for _, name := range os.Args[1:] {
		content, err := os.ReadFile(name)
		if err != nil {
			fail(name, err)
		}
		documents := reader.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				fail(name, err)
			}
			var kind meta.TypeMeta
			if err := yaml.Unmarshal(document, &kind); err != nil {
				fail(name, err)
			}
			// A document of comments.
			if kind.Kind == "" {
				continue
			}
			text := kind.APIVersion + " " + kind.Kind
			if others[text] {
				passed++
				continue
			}
			object, is := known[text]
			if !is {
				fail(name, fmt.Errorf("%s is no kind that the chart has", text))
			}
			if err := yaml.UnmarshalStrict(document, object()); err != nil {
				fail(name, fmt.Errorf("%s: %w\n%s", text, err, document))
			}
			decoded++
		}
	}
	fmt.Printf("%d objects decoded strictly, %d of other projects\n", decoded, passed)
	if decoded == 0 {
		os.Exit(1)
	}
}

func fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(1)
}
