# Every target calls the developer tool. Cargo builds the tool in seconds, and the tool installs and
# builds the rest. `cargo dev help` lists its commands.

.PHONY: run demo psql test test-long setup package bench bench-sql fmt

# The first build of the tool prints nothing and takes a minute.
DEV = @[ -e target/release/dev ] || echo "==> building the developer tool"; cargo dev

run:  ## PostgreSQL with the extension, and the gateway, until Ctrl-C
	$(DEV) run

demo: ## as run, with a real Prometheus and node_exporter writing to the gateway
	$(DEV) demo

psql: ## psql in the running database
	$(DEV) psql

test: ## everything that CI runs
	$(DEV) test

test-long: ## all tests with large budgets, then random tests and fuzzing for MINUTES=120; writes tests/record/long.json
	$(DEV) test-long $(MINUTES)

setup: ## install missing packages, build, install the extension
	$(DEV) setup

package: ## a .deb for each of PostgreSQL 15 to 18, and an archive of the sources, in target/distribution
	$(DEV) package

bench: ## the short form of all benchmarks in less than 15 minutes; others by ARGS="events --only json"; see ARGS=--help
	$(DEV) bench $(ARGS)

bench-sql: ## time SQL on lanes tables beside heap, DuckDB, Polars and chDB; options in ARGS="--rows 20000 …"
	$(DEV) bench-sql $(ARGS)

fmt: ## format all code
	$(DEV) fmt
