"""Commands have a canonical form, a key, a scope and a role; what is thrown away has none."""

from __future__ import annotations

import pytest
from command_views import ROOT, simple

from commonplace.learning.commands.canonical import Canonical, canonical


def form_of(line: str) -> Canonical | None:
    return canonical(simple(line), (ROOT,))


@pytest.mark.parametrize(
    ("line", "role", "form", "scope"),
    [
        # other ecosystems
        ("dune runtest", "test", "dune runtest", ""),
        ("dbt build", "build", "dbt build", ""),
        ("gleam format --check", "format", "gleam format --check", ""),
        ("rebar3 eunit", "test", "rebar3 eunit", ""),
        ("scala-cli test .", "test", "scala-cli test", "."),
        ("opa test policies", "test", "opa test", "policies"),
        ("kubeconform manifests", "lint", "kubeconform", "manifests"),
        ("idf.py build", "build", "idf.py build", ""),
        ("named-checkzone example.org db.example", "lint", "named-checkzone", "db.example"),
        ("packer validate image.pkr.hcl", "lint", "packer validate", ""),
        ("lake build", "build", "lake build", ""),
        ("liquibase update", "migrate", "liquibase update", ""),
        ("julia --project -e 'using Pkg; Pkg.test()'", "test", "julia --project -e 'using Pkg; Pkg.test()'", ""),
        ("Rscript -e 'devtools::test()'", "test", "Rscript -e 'devtools::test()'", ""),
        ("python -m shop.validate", "check", "python -m shop.validate", ""),
        ("uv run python -m shop.load_prices --all", "task", "uv run python -m shop.load_prices", ""),
        # task runners
        ("make test", "test", "make test", ""),
        ("make", "build", "make", ""),
        ("make -j8 lint V=1", "lint", "make lint V=1", ""),
        ("npm run test", "test", "npm test", ""),
        ("npm t", "test", "npm test", ""),
        ("npm run lint -- --fix src", "lint", "npm run lint", ""),
        ("npm run build -w web", "build", "npm -w web run build", ""),
        ("pnpm --filter @shop/web test", "test", "pnpm --filter @shop/web test", ""),
        ("pnpm -r run typecheck", "typecheck", "pnpm -r run typecheck", ""),
        ("yarn workspace web build", "build", "yarn workspace web build", ""),
        ("yarn lint", "lint", "yarn lint", ""),
        ("bun run test", "test", "bun run test", ""),
        ("turbo run build --filter=web", "build", "turbo --filter=web run build", ""),
        ("nx run web:test", "test", "nx run web:test", ""),
        ("nx test web", "test", "nx test web", ""),
        ("nx run-many -t lint", "lint", "nx run-many -t lint", ""),
        ("./gradlew :app:test", "test", "./gradlew :app:test", ""),
        ("mvn clean verify", "check", "mvn clean verify", ""),
        ("just e2e", "e2e", "just e2e", ""),
        ("task db:migrate", "migrate", "task db:migrate", ""),
        ("mise run test:ci", "check", "mise run test:ci", ""),
        ("deno task dev", "run", "deno task dev", ""),
        ("cargo xtask ci", "check", "cargo xtask ci", ""),
        ("composer test", "test", "composer test", ""),
        ("earthly +build", "build", "earthly +build", ""),
        # tasks that a carrier runs by their names
        ("hatch run test", "test", "hatch run test", ""),
        ("hatch run lint", "lint", "hatch run lint", ""),
        ("pdm run check", "check", "pdm run check", ""),
        ("hatch run pytest tests", "test", "hatch run pytest", "tests"),
        # options before the subcommand
        ("docker compose -f dev.yml up", "run", "docker compose -f dev.yml up", ""),
        ("docker compose -p shop --profile db up", "run", "docker compose -p shop --profile db up", ""),
        # tools
        ("go test ./...", "test", "go test", "./..."),
        ("go test -v -count=1 -run 'TestCart$' ./cart", "test", "go test", "./cart"),
        ("go test -tags=integration ./...", "integration", "go test -tags=integration", "./..."),
        ("go test ./e2e/...", "e2e", "go test", "./e2e/..."),
        ("go build -o /tmp/shop ./cmd/shop", "build", "go build -o <out>", "./cmd/shop"),
        ("golangci-lint run --timeout 5m ./...", "lint", "golangci-lint run", "./..."),
        ("golangci-lint fmt", "format", "golangci-lint fmt", ""),
        ("gofmt -l -s .", "format", "gofmt -l -s", "."),
        ("pytest -x -q tests/test_cart.py::test_total", "test", "pytest", ""),
        ("pytest -m integration", "integration", "pytest -m integration", ""),
        ("uv run pytest -n auto tests", "test", "uv run pytest", "tests"),
        ("python3 -m pytest -k total", "test", "python3 -m pytest", ""),
        (".venv/bin/mypy src", "typecheck", ".venv/bin/mypy", "src"),
        ("ruff check --fix .", "lint", "ruff check", "."),
        ("ruff format --check src tests", "format", "ruff format --check", "src tests"),
        ("npx tsc --noEmit", "typecheck", "npx tsc --noEmit", ""),
        ("npx -y vitest run src/cart.test.ts", "test", "npx vitest run", ""),
        ("npx prettier@3 --check .", "format", "npx prettier@3 --check", "."),
        ("npx @biomejs/biome check src", "lint", "npx @biomejs/biome check", "src"),
        ("cross-env CI=1 jest --coverage", "test", "cross-env jest", ""),
        ("cargo clippy --all-targets -- -D warnings", "lint", "cargo clippy", ""),
        ("cargo +nightly test --workspace", "test", "cargo test --workspace", ""),
        ("dotnet test --filter Cart --nologo", "test", "dotnet test", ""),
        ("docker compose up -d", "run", "docker compose up -d", ""),
        ("docker compose exec -T web pytest tests", "test", "docker compose exec web pytest", "tests"),
        ("python manage.py migrate", "migrate", "python manage.py migrate", ""),
        ("alembic upgrade head", "migrate", "alembic upgrade head", ""),
        ("prisma migrate deploy", "migrate", "prisma migrate deploy", ""),
        ("bundle exec rspec spec/cart_spec.rb", "test", "bundle exec rspec", ""),
        ("mise exec -- golangci-lint run", "lint", "mise exec -- golangci-lint run", ""),
        ("npm version minor", "release", "npm version minor", ""),
        ("pip install -e .", "setup", "pip install -e .", ""),
        # a form works: order, values and quotes stay
        (
            "Rscript -e \"testthat::test_dir('tests')\"",
            "test",
            "Rscript -e 'testthat::test_dir('\"'\"'tests'\"'\"')'",
            "",
        ),
        (
            "helm upgrade shop charts/shop --set image.tag=7",
            "deploy",
            "helm upgrade shop charts/shop --set image.tag=7",
            "",
        ),
        (
            "helm upgrade --install shop charts/shop -n web",
            "deploy",
            "helm upgrade --install shop charts/shop -n web",
            "",
        ),
        (
            "ansible-playbook -i hosts.ini site.yml --limit web",
            "deploy",
            "ansible-playbook -i hosts.ini site.yml --limit web",
            "",
        ),
        ("kubectl --context prod apply -f k8s/", "deploy", "kubectl --context prod apply -f k8s/", ""),
        ("pulumi up -s dev --yes", "deploy", "pulumi up -s dev", ""),
        ("serverless deploy --stage dev", "deploy", "serverless deploy --stage dev", ""),
        (
            "uvicorn shop.app:app --host 0.0.0.0 --port 8000",
            "run",
            "uvicorn shop.app:app --host 0.0.0.0 --port 8000",
            "",
        ),
        ("flask --app shop db upgrade", "migrate", "flask --app shop db upgrade", ""),
        ("alembic -x tenant=a upgrade head", "migrate", "alembic -x tenant=a upgrade head", ""),
        ("alembic revision --autogenerate -m 'add carts'", "migrate", "alembic revision --autogenerate -m …", ""),
        ("docker build -t shop:1 .", "build", "docker build -t shop:1", "."),
        ("cargo build --features 'cart mail'", "build", "cargo build --features 'cart mail'", ""),
        ("go build -ldflags '-X main.v=1' ./cmd/shop", "build", "go build -ldflags '-X main.v=1'", "./cmd/shop"),
        ("dbt run --select carts+ --vars '{\"day\": 1}'", "build", "dbt run --select carts+ --vars '{\"day\": 1}'", ""),
        ("ruff check --select E501 src", "lint", "ruff check --select E501", "src"),
        ("nox -s tests -- -k cart", "test", "nox -s tests", ""),
        ("bazel test //cart:all --test_arg=x", "test", "bazel test --test_arg=x", "//cart:all"),
        # scripts
        ("./scripts/deploy.sh staging", "deploy", "./scripts/deploy.sh staging", ""),
        ("bash scripts/check-all.sh", "check", "bash scripts/check-all.sh", ""),
        ("python tools/seed_db.py --fast", "migrate", "python tools/seed_db.py", ""),
        ("npx tsx scripts/import.ts", "task", "npx tsx scripts/import.ts", ""),
        ("node server.js", "task", "node server.js", ""),
        (f"{ROOT}/scripts/lint.sh", "lint", "scripts/lint.sh", ""),
    ],
)
def test_a_command_has_a_role_a_form_and_a_scope(line: str, role: str, form: str, scope: str) -> None:
    found = form_of(line)

    assert found is not None
    assert (role, form, scope) == (found.role, found.form, found.scope)


@pytest.mark.parametrize(
    "line",
    [
        "go test /tmp/x/...",
        "bash /tmp/run.sh",
        "bash /opt/tools/run.sh",
        "python - <<'E'\nprint(1)\nE",
        "python -c 'print(1)'",
        "python -m http.server",
        "python -m json.tool x.json",
        "julia -e 'println(1)'",
        "Rscript -e 'summary(1)'",
        "nginx -v",
        "node -e '1'",
        "$TOOL test",
        "go vet $(go list ./...)",
        "cd /tmp/x && make test",
        "cd $X && make test",
        "docker push shop:3f9a2b7c1d",
        "make deploy SHA=3f9a2b7c1d",
        "make build OUT=/tmp/x",
        "make test PKG=$(cat x)",
        "pytest --version",
        "npx jest --listTests",
        "go test --help",
        "npm view left-pad",
        "pnpm why left-pad",
        "make help",
        "just",
        "mise ls",
        "golangci-lint cache clean",
        "git status",
        "ls tests",
        "npx cowsay hi",
        "uv run python -c 'x'",
        "npx",
    ],
)
def test_a_command_that_says_nothing_of_the_project_has_no_form(line: str) -> None:
    assert form_of(line) is None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("npm run test", "npm test"),
        ("pnpm run lint", "pnpm lint"),
        ("npx eslint .", "eslint src"),
        ("bunx vitest run", "uvx vitest run"),
        ("go test -tags=slow ./a", "go test -tags slow ./b"),
        ("gofmt -l .", "gofmt -w ."),
        ("docker build -t shop:1 .", "docker build -t shop:2 ."),
        ("helm upgrade shop charts/shop --set image.tag=1", "helm upgrade shop charts/shop --set image.tag=2"),
        ("alembic revision -m 'add carts'", "alembic revision -m 'drop carts'"),
        ("python -m pytest", "python3 -m pytest tests"),
        ("bash scripts/x.sh", "./scripts/x.sh --fast"),
        ("go test -v ./...", "go test -short ./..."),
        ("cargo test --no-fail-fast", "cargo test cart"),
    ],
)
def test_two_ways_to_write_a_command_have_one_key(one: str, two: str) -> None:
    first, second = form_of(one), form_of(two)

    assert first is not None
    assert second is not None
    assert first.key == second.key


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("bun run test", "bun test"),
        ("go test ./...", "go test -race ./..."),
        ("uv run pytest", "pytest"),
        ("npm test", "pnpm test"),
        ("go build ./...", "go build -o shop ./cmd/shop"),
        ("make test", "make lint"),
        ("scripts/db.sh migrate", "scripts/db.sh reset"),
    ],
)
def test_two_commands_have_two_keys(one: str, two: str) -> None:
    first, second = form_of(one), form_of(two)

    assert first is not None
    assert second is not None
    assert first.key != second.key


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("make -C api test", "api"),
        ("npm --prefix web test", "web"),
        ("pnpm -C web lint", "web"),
        ("yarn --cwd web test", "web"),
        ("cargo test --manifest-path core/Cargo.toml", "core"),
        ("go -C api test ./...", "api"),
        ("./gradlew -p app test", "app"),
        ("uv run --directory api pytest", "api"),
        ("cd api && make test", "api"),
        (f"cd {ROOT}/api && make test", "api"),
    ],
)
def test_a_flag_moves_the_folder(line: str, folder: str) -> None:
    found = form_of(line)

    assert found is not None
    assert f"{ROOT}/{folder}" == found.folder


@pytest.mark.parametrize(
    ("line", "is_narrowed"),
    [
        ("go test ./...", False),
        ("go test -run TestCart ./...", True),
        ("pytest tests/test_cart.py", True),
        ("pytest -k cart", True),
        ("npm test -- cart", True),
        ("make test PKG=cart", False),
        ("mise run test cart", True),
        ("eslint 'src/**/*.ts'", True),
        ("go vet /opt/other", True),
        ("vitest run cart", True),
    ],
)
def test_words_that_choose_a_part_narrow_a_command(line: str, is_narrowed: bool) -> None:
    found = form_of(line)

    assert found is not None
    assert is_narrowed == found.is_narrowed


def test_paths_of_the_project_are_relative() -> None:
    found = form_of(f"go test {ROOT}/cart/...")

    assert found is not None
    assert "cart/..." == found.scope


def test_paths_of_the_repository_of_a_worktree_are_relative() -> None:
    found = canonical(simple(f"{ROOT}/scripts/lint.sh", f"{ROOT}/.worktrees/one"), (f"{ROOT}/.worktrees/one", ROOT))

    assert found is not None
    assert "script scripts/lint.sh" == found.key
