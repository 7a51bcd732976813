job "app" {
  update {
    # One server after another.
    max_parallel = 1
  }

  group "app" {
    count = 3

    network {
      port "http" {}
    }

    task "app" {
      driver = "exec"

      config {
        command = "local/drain-around.sh"
        args    = ["/usr/bin/app", "--port", "${NOMAD_PORT_http}"]
      }

      artifact {
        source = "https://files.example/drain-around.sh"
      }

      # The wrapper hears it, drains, and only then sends SIGTERM to the app.
      kill_signal = "SIGTERM"

      # Longer than the drain and the end of the app together. A client allows 30s unless its max_kill_timeout says more.
      kill_timeout = "120s"

      env {
        DRAINABLE_BALANCER      = "haproxy://10.0.0.1:9999"
        DRAINABLE_TARGET        = "${NOMAD_ADDR_http}"
        DRAINABLE_DRAIN_TIMEOUT = "90s"
        DRAINABLE_TICKETS       = "${NOMAD_ALLOC_DIR}/data/drainable"
      }
    }
  }
}
