// A control plane of your own, with go-control-plane: it owns the endpoints, and drains them.
//
// It serves one snapshot of clusters and endpoint sets (ADS, state of the world and delta), and takes the next one as a
// line of JSON on standard input. On standard output it says its port, then the version of each snapshot it has set.
//
//	control-plane <port, 0 for a free one> <node id>...
//
//	{"version":"2","clusters":{"web":"web"},"sets":{"web":[{"address":"10.0.0.1","port":80,"status":"DRAINING"}]}}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"

	clusters "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

const module = "github.com/envoyproxy/go-control-plane"

type host struct {
	Address string `json:"address"`
	Port    uint32 `json:"port"`
	Status  string `json:"status"`
}

type change struct {
	Version string `json:"version"`
	// The endpoint set of each cluster, by the cluster's name.
	Clusters map[string]string `json:"clusters"`
	Sets     map[string][]host `json:"sets"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("go-control-plane", version())
		return
	}
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: control-plane <port> <node id>"))
	}
	if _, err := strconv.Atoi(os.Args[1]); err != nil {
		fail(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fail(err)
	}
	snapshots := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	srv := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(srv, server.NewServer(context.Background(), snapshots, nil))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go serve(srv, listener)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next change
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			fail(err)
		}
		set(snapshots, next)
		fmt.Println(next.Version)
	}
}

func serve(srv *grpc.Server, listener net.Listener) {
	if err := srv.Serve(listener); err != nil {
		fail(err)
	}
}

func set(snapshots cache.SnapshotCache, next change) {
	resources := map[resource.Type][]types.Resource{resource.ClusterType: {}, resource.EndpointType: {}}
	for name, service := range next.Clusters {
		resources[resource.ClusterType] = append(resources[resource.ClusterType], cluster(name, service))
	}
	for name, hosts := range next.Sets {
		resources[resource.EndpointType] = append(resources[resource.EndpointType], assignment(name, hosts))
	}
	snapshot, err := cache.NewSnapshot(next.Version, resources)
	if err != nil {
		fail(err)
	}
	for _, node := range os.Args[2:] {
		if err := snapshots.SetSnapshot(context.Background(), node, snapshot); err != nil {
			fail(err)
		}
	}
}

func cluster(name, service string) *clusters.Cluster {
	return &clusters.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusters.Cluster_Type{Type: clusters.Cluster_EDS},
		EdsClusterConfig: &clusters.Cluster_EdsClusterConfig{
			ServiceName: service,
			EdsConfig: &core.ConfigSource{
				ResourceApiVersion:    core.ApiVersion_V3,
				ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
			},
		},
	}
}

func assignment(name string, hosts []host) *endpoint.ClusterLoadAssignment {
	all := make([]*endpoint.LbEndpoint, 0, len(hosts))
	for _, h := range hosts {
		all = append(all, &endpoint.LbEndpoint{
			HealthStatus: core.HealthStatus(core.HealthStatus_value[h.Status]),
			HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: &core.Address{
				Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
					Address: h.Address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: h.Port},
				}},
			}}},
		})
	}
	return &endpoint.ClusterLoadAssignment{
		ClusterName: name,
		Endpoints:   []*endpoint.LocalityLbEndpoints{{LbEndpoints: all}},
	}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "unknown"
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
