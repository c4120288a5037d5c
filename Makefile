# Everything is done by the developer tool: cargo builds it in seconds, and it installs and builds the rest.
# `cargo dev help` lists what it can do.

.PHONY: run demo psql test test-long setup bench bench-sql fmt

# Its first build is silent, and takes a minute.
DEV = @[ -e target/release/dev ] || echo "==> building the developer tool"; cargo dev

run:  ## PostgreSQL with the extension, and the gateway, until Ctrl-C
	$(DEV) run

demo: ## the same, with a real Prometheus and node_exporter writing to it
	$(DEV) demo

psql: ## psql in the running database
	$(DEV) psql

test: ## everything that CI runs
	$(DEV) test

test-long: ## the same and more with large budgets, then random tests and fuzzing for MINUTES=120; writes tests/record/long.json
	$(DEV) test-long $(MINUTES)

setup: ## install what is missing, build, install the extension
	$(DEV) setup

bench: ## short form of all benchmarks, in less than 15 minutes; others by ARGS="events --only json"; see ARGS=--help
	$(DEV) bench $(ARGS)

bench-sql: ## SQL on lanes tables timed beside heap, DuckDB, Polars and chDB; options in ARGS="--rows 20000 …"
	$(DEV) bench-sql $(ARGS)

fmt: ## format all code
	$(DEV) fmt
