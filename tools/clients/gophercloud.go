// Command gophercloud calls each function of the Placement package of gophercloud. It reads the
// credentials from the variables of the program openstack, and the UUID of a provider from its
// argument. The provider has 8 VCPUs, of which 1 is used, and one trait.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/placement/v1/resourceproviders"
)

const name = "gophercloud"

func main() {
	log.SetFlags(log.Lshortfile)
	uuid := os.Args[1]
	client := newClient()
	create(client)
	list(client)

	usages, err := resourceproviders.GetUsages(client, uuid).Extract()
	require(err, usages.Usages["VCPU"] == 1, usages)
	inventories, err := resourceproviders.GetInventories(client, uuid).Extract()
	require(err, inventories.Inventories["VCPU"].Total == 8, inventories)
	traits, err := resourceproviders.GetTraits(client, uuid).Extract()
	require(err, len(traits.Traits) == 1, traits)
}

func newClient() *gophercloud.ServiceClient {
	options, err := openstack.AuthOptionsFromEnv()
	require(err, true, nil)
	provider, err := openstack.AuthenticatedClient(options)
	require(err, true, nil)
	endpoint := gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")}
	client, err := openstack.NewPlacementV1(provider, endpoint)
	require(err, true, nil)
	return client
}

// create creates a provider. The function reads a body from the response, which exists since 1.20.
func create(client *gophercloud.ServiceClient) {
	options := resourceproviders.CreateOpts{Name: name}
	err := resourceproviders.Create(client, options).Err
	require(nil, err != nil, "Create accepts the response of microversion 1.0")
	client.Microversion = os.Getenv("OS_PLACEMENT_API_VERSION")
	options.Name = name + "-new"
	created, err := resourceproviders.Create(client, options).Extract()
	require(err, created.Name == options.Name, created)
}

func list(client *gophercloud.ServiceClient) {
	pages, err := resourceproviders.List(client, resourceproviders.ListOpts{Name: name}).AllPages()
	require(err, true, nil)
	listed, err := resourceproviders.ExtractResourceProviders(pages)
	require(err, len(listed) == 1 && listed[0].Name == name, listed)
}

// require ends the program if there is an error, or if a condition does not apply.
func require(err error, condition bool, value interface{}) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
	if !condition {
		log.Output(2, fmt.Sprintf("unexpected: %+v", value))
		os.Exit(1)
	}
}
