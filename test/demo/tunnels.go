package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// printTunnels prints the Tunnels as kubectl does: with the CRD's printer columns, which
// the API server renders.
func printTunnels(ctx context.Context, config *rest.Config) error {
	table, err := getTable(ctx, config, "/apis/"+v1alpha1.GroupVersion.String()+"/tunnels")
	if err != nil {
		return fmt.Errorf("list the Tunnels: %w", err)
	}
	fmt.Println("\n$ kubectl get tunnels -A")
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			printCell(out, i, strings.ToUpper(column.Name))
		}
	}
	fmt.Fprintln(out)
	for _, row := range table.Rows {
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				printCell(out, i, row.Cells[i])
			}
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

func printCell(out *tabwriter.Writer, i int, value any) {
	if i > 0 {
		fmt.Fprint(out, "\t")
	}
	if value != nil {
		fmt.Fprint(out, value)
	}
}

// getTable reads the list at the path as a table.
func getTable(ctx context.Context, config *rest.Config, path string) (*metav1.Table, error) {
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := api.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the API server returned %s", response.Status)
	}
	table := &metav1.Table{}
	return table, json.NewDecoder(response.Body).Decode(table)
}
