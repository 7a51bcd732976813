// @ts-check
// JS and CJS user on Node 22: no top-level await, no `await using`.
const { drain, ready } = require('drainable')
const { haproxyRuntime } = require('drainable/haproxy-runtime')
async function main() {
  const lb = haproxyRuntime({ socket: { host: '127.0.0.1', port: 9999 } }) // Windows, macOS: TCP
  try {
    await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '30s' })
    await ready(lb, { pool: 'web', member: 'web1' })
  } finally {
    await lb.close()
  }
}
main().catch((e) => {
  console.error(e.code, e.message)
  process.exitCode = 1
})
