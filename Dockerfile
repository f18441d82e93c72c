# Everything of Servewatch that is Python: the exporter (what runs by default), generate, and the demo fleet.

FROM python:3.13.14-slim-bookworm AS dependencies
WORKDIR /build
COPY pyproject.toml constraints.txt ./
# What is needed stands in pyproject.toml, without the development tools, and what that needs in turn is pinned in
# constraints.txt. pip itself stays behind in this stage.
RUN python3 -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > pins.txt \
 && python3 -m venv --without-pip /opt/venv \
 && python3 -m pip --python /opt/venv/bin/python install --no-cache-dir --only-binary=:all: -r pins.txt -c constraints.txt

FROM python:3.13.14-slim-bookworm
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /srv/servewatch
COPY . .
# The root file system is read-only at run time: compile now. A new named volume takes the owner of its directory here.
RUN python -m compileall -q . \
 && install -d -o 10001 -g 65534 /generated /var/lib/servewatch /var/lib/phone
# Group 65534 is also that of Prometheus and Alertmanager, so that one group can be given the secrets.
USER 10001:65534
CMD ["python", "-m", "exporter", "serve", "--fleet=/etc/servewatch/fleet.yml", "--listen=0.0.0.0:9801"]
