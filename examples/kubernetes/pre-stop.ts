/**
 * A preStop hook that takes its pod out of every balancer, and ends when the pod is idle there: for clusters without the
 * controller. It asks the balancers alone, so its pod needs no right in the cluster. `pre-stop.yaml` has the manifest.
 *
 *     POD_IP=10.1.0.7 GRACE_SECONDS=60 HAPROXY=10.0.0.2:9999,10.0.0.3:9999 node pre-stop.ts
 *
 * The pod ends in any case: an error is said, and does not hold it up.
 */
import { drain, isDrainableError } from 'drainable'
import { balancerOf, isSetUp, say } from './support/balancer.ts'

/** Of the grace period: for the last look, and for the server itself after its SIGTERM. */
const MARGIN = 8_000

async function run(env: NodeJS.ProcessEnv): Promise<void> {
  const { POD_IP: address = '', GRACE_SECONDS: grace = '30', STATEFULSET_POD = '' } = env
  const isOfSet = STATEFULSET_POD !== ''
  try {
    await using lb = balancerOf(env)
    const report = await drain(
      lb,
      { address },
      {
        timeout: Math.max(Number(grace) * 1_000 - MARGIN, 1_000),
        onTimeout: 'proceed',
        // A Deployment makes the next pod first. A StatefulSet makes it when this one has gone: waiting burns the grace.
        onMinimum: isOfSet ? 'fail' : 'wait',
        onUnreachable: 'wait',
        settle: '500ms',
      },
    )
    for (const { ref, outcome, verifiedIdle, elapsed, why } of report.members)
      say('left', { ...ref, outcome, verifiedIdle, elapsed, why: why.map(({ text }) => text) })
  } catch (error) {
    if (isDrainableError(error, 'POOL_AT_MINIMUM') && isOfSet)
      say('last of its StatefulSet', {
        message: 'nobody will come before it has gone, so it serves to its end and ends at once',
      })
    else if (isDrainableError(error, 'NOT_FOUND')) say('no balancer has it', { address })
    else say('not drained', { message: String(error) })
  }
}

if (isSetUp('HAPROXY, POD_IP and GRACE_SECONDS')) await run(process.env)
