# Everything is done by the developer tool: cargo builds it in seconds, and it installs and builds the rest.
# `cargo dev help` lists what it can do.

.PHONY: run demo psql test setup bench bench-sql fmt

run:  ## PostgreSQL with the extension, and the gateway, until Ctrl-C
	@cargo dev run

demo: ## the same, with a real Prometheus and node_exporter writing to it
	@cargo dev demo

psql: ## psql in the running database
	@cargo dev psql

test: ## everything that CI runs
	@cargo dev test

setup: ## install what is missing, build, install the extension
	@cargo dev setup

bench: ## short form of all benchmarks, in less than 15 minutes; others by ARGS="events --only json"; see ARGS=--help
	@cargo dev bench $(ARGS)

bench-sql: ## SQL on lanes tables timed beside heap, DuckDB, Polars and chDB; options in ARGS="--rows 20000 …"
	@cargo dev bench-sql $(ARGS)

fmt: ## format all code
	@cargo dev fmt
