import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { drain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'

/** A drain in a worker thread. */
if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  worker.on('message', (text) => console.log(text))
} else {
  const fake = await startFake({ pools: { web: ['web1', 'web2'] } })
  const lb = haproxyRuntime({ socket: fake.socket })
  const report = await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '20s' })
  const error = await drain(lb, { pool: 'web', member: 'web9' }).catch((thrown) => thrown)
  await lb.close()
  await fake.close()
  parentPort.postMessage(`${report.outcome} ${error.message}`)
}
