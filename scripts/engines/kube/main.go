// A control plane for tests in one process: an embedded etcd, the Kubernetes API server, and the upstream
// EndpointSlice controller. There is no kubelet and no scheduler: a test writes the status of pods and nodes itself.
//
// The arguments are those of kube-apiserver. The environment says the rest:
//
//	TEST_ETCD_DIR, TEST_ETCD_CLIENT_URL, TEST_ETCD_PEER_URL   start etcd in this folder, on these addresses
//	TEST_ENDPOINTSLICE_CONTROLLER, TEST_TOKEN                 run the controller against this server
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
)

const maxEndpointsPerSlice = 100

func startEtcd(dir, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("not ready after 30 s")
	}
}

func awaitReady(ctx context.Context, client kubernetes.Interface) {
	for {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil && string(body) == "ok" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func runEndpointSlices(host, token string) {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host:            host,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // loopback, a certificate made at start
		QPS:             200,
		Burst:           400,
	})
	awaitReady(ctx, client)
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	controller := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		factory.Discovery().V1().EndpointSlices(), maxEndpointsPerSlice, client, 0)
	factory.Start(ctx.Done())
	fmt.Fprintln(os.Stderr, "endpointslice controller starting")
	controller.Run(ctx, 2)
}

func main() {
	if dir := os.Getenv("TEST_ETCD_DIR"); dir != "" {
		err := startEtcd(dir, os.Getenv("TEST_ETCD_CLIENT_URL"), os.Getenv("TEST_ETCD_PEER_URL"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
	}
	if host := os.Getenv("TEST_ENDPOINTSLICE_CONTROLLER"); host != "" {
		go runEndpointSlices(host, os.Getenv("TEST_TOKEN"))
	}
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
