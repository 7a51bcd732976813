/** What happens in clusters, for a soak: each with requests running, over a real API server and a real balancer. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Backend } from '../haproxy-traffic.js'
import { until } from '../haproxy.js'
import type { Program } from './program.js'
import type { KubernetesStage } from './stage.js'

/** How long a pod serves after its deletion, as `preStop: { sleep: { seconds: 2 } }` makes it. */
const PRE_STOP = 2_000
/** The longest that the balancer may take to follow, in milliseconds. */
const FOLLOW = 60_000

/** One case while it is played. */
export class Scene {
  readonly stage: KubernetesStage
  /** Begins a process of whoever follows the Service. */
  readonly begin: () => Promise<Program | undefined>
  /** Says whether a ready or serving endpoint is there: requests that fail meanwhile count. */
  expectOk: (isExpected: boolean) => void = () => undefined
  #next = 100
  readonly #backends = new Map<string, Backend>()

  constructor(stage: KubernetesStage, begin: () => Promise<Program | undefined>) {
    this.stage = stage
    this.begin = begin
    for (const [i, backend] of stage.pods.entries()) this.#backends.set(`web-${i + 1}`, backend)
  }

  /** A pod that is made, and passes its probe. */
  async arrive(name: string, at?: number): Promise<void> {
    this.#next += 1
    this.#backends.set(name, await this.stage.addPod(name, at ?? this.#next))
  }

  /** A pod that is deleted, serves for as long as its hook sleeps, and ends, whatever anybody has done by then. */
  async retire(name: string): Promise<void> {
    await this.stage.cluster.deletePod(name)
    await pause(PRE_STOP)
    await this.end(name)
  }

  async end(name: string): Promise<void> {
    await this.#backends.get(name)?.[Symbol.asyncDispose]()
    await this.stage.cluster.podEnded(name)
  }

  /** Waits until the balancer has the pod like this: `in`, `held` (or removed), `gone`. */
  async follows(pod: string, state: 'in' | 'held' | 'gone'): Promise<void> {
    const is = async (): Promise<true | undefined> => {
      const status = await this.stage.statusOf(pod)
      if (state === 'in') return status === 'no check' || undefined
      if (state === 'gone') return status === '' || undefined
      return /DRAIN|MAINT/.test(status) || status === '' || undefined
    }
    await until(is, `${pod} is ${state}`, FOLLOW)
  }
}

export interface Case {
  readonly name: string
  readonly pods: number
  /** Needs the controller's own replicas or its process, so there is nothing to set beside it. */
  readonly ours?: true
  /** Beside `web` a second Service `api` has the same pods, in a pool of its own. */
  readonly two?: true
  readonly play: (scene: Scene) => Promise<void>
}

const KILLS = 50
/** The controller's, in audit events. */
const ACCOUNT = 'system:serviceaccount:drainable:drainable'

export const CASES: readonly Case[] = [
  {
    name: 'roll of ten',
    pods: 10,
    play: async (scene) => {
      for (let i = 1; i <= 10; i += 1) {
        await scene.arrive(`new-${i}`)
        await scene.retire(`web-${i}`)
      }
    },
  },
  {
    name: 'StatefulSet of three',
    pods: 3,
    play: async (scene) => {
      for (const pod of ['web-3', 'web-2', 'web-1']) {
        await scene.retire(pod)
        await scene.stage.cluster.seen(pod, 'gone')
        await scene.arrive(pod)
      }
    },
  },
  {
    name: 'flap of a probe',
    pods: 3,
    play: async ({ stage: { cluster } }) => {
      for (let i = 0; i < 20; i += 1) {
        await cluster.setReady('web-1', i % 2 === 1)
        await pause(100)
      }
    },
  },
  {
    name: 'crash loop that fails its probe first',
    pods: 3,
    play: async (scene) => {
      for (let i = 0; i < 5; i += 1) {
        await scene.stage.cluster.setReady('web-1', false)
        await scene.follows('web-1', 'held')
        await scene.stage.cluster.setReady('web-1', true)
        await scene.follows('web-1', 'in')
      }
    },
  },
  {
    name: 'scaled to zero and back',
    pods: 2,
    play: async (scene) => {
      await scene.retire('web-1')
      scene.expectOk(false)
      await scene.retire('web-2')
      await scene.stage.cluster.seen('web-2', 'gone')
      await scene.arrive('web-3')
      await until(async () => (await scene.stage.answers()) || undefined, 'it serves', FOLLOW)
      scene.expectOk(true)
      await pause(1_000)
    },
  },
  {
    name: 'tainted, and taken back',
    pods: 2,
    play: async (scene) => {
      const { cluster } = scene.stage
      await cluster.addNode('n2', '192.0.2.2')
      await scene.stage.addPod('away', 90, { node: 'n2' })
      await cluster.taintNode('n2', 'aws-node-termination-handler/spot-itn')
      await pause(2_000)
      await cluster.untaintNode('n2')
      await scene.follows('away', 'in')
    },
  },
  {
    name: 'node deleted',
    pods: 2,
    play: async (scene) => {
      const { cluster } = scene.stage
      await cluster.addNode('n2', '192.0.2.2')
      const away = await scene.stage.addPod('away', 90, { node: 'n2' })
      await scene.follows('away', 'in')
      await cluster.deleteNode('n2')
      await pause(PRE_STOP)
      await away[Symbol.asyncDispose]()
      await cluster.podEnded('away')
    },
  },
  {
    name: 'relabelled in mid-drain',
    pods: 3,
    play: async (scene) => {
      const { cluster } = scene.stage
      for (let i = 0; i < 3; i += 1) {
        await cluster.label('web-1', 'other')
        await pause(300)
        await cluster.label('web-1', 'web')
        await scene.follows('web-1', 'in')
      }
      await scene.retire('web-1')
    },
  },
  {
    name: 'address reused',
    pods: 2,
    play: async (scene) => {
      await scene.arrive('old', 77)
      await scene.follows('old', 'in')
      await scene.retire('old')
      await scene.arrive('young', 77)
      await until(
        async () => (await scene.stage.stateAt(77)) === 'no check' || undefined,
        'in',
        FOLLOW,
      )
      await pause(1_000)
    },
  },
  {
    name: 'third generation in mid-roll',
    pods: 3,
    play: async (scene) => {
      for (let i = 1; i <= 3; i += 1) await scene.arrive(`second-${i}`)
      const leaving = [1, 2, 3].map((i) => scene.retire(`web-${i}`))
      for (let i = 1; i <= 3; i += 1) await scene.arrive(`third-${i}`)
      leaving.push(...[1, 2, 3].map((i) => scene.retire(`second-${i}`)))
      await Promise.all(leaving)
    },
  },
  {
    name: 'two Services of the same pods',
    pods: 3,
    two: true,
    play: async (scene) => {
      for (let i = 1; i <= 3; i += 1) {
        await scene.arrive(`new-${i}`)
        await scene.retire(`web-${i}`)
      }
    },
  },
  {
    name: 'a watch whose version is forgotten',
    pods: 3,
    ours: true,
    play: async (scene) => {
      const { stage } = scene
      const list = 'list discovery.k8s.io/endpointslices'
      const lists = (): number => stage.plane.countOf(ACCOUNT, list)
      const before = lists()
      // It wakes up with a version from before the restart, which the server answers with 410.
      stage.controller?.signal('SIGSTOP')
      await stage.plane.kill()
      await stage.plane.restart()
      await stage.cluster.watch()
      await scene.arrive('new-1')
      await stage.cluster.deletePod('web-1')
      stage.controller?.signal('SIGCONT')
      await scene.follows('new-1', 'in')
      await scene.follows('web-1', 'held')
      await until(() => lists() > before, 'a new list', FOLLOW)
      await scene.end('web-1')
      await scene.retire('web-2')
    },
  },
  {
    name: 'API server dead for 120 s',
    pods: 3,
    play: async (scene) => {
      const { plane, cluster } = scene.stage
      await plane.kill()
      await pause(120_000)
      await plane.restart()
      await cluster.watch()
      await cluster.deletePod('web-1')
      await scene.follows('web-1', 'held')
    },
  },
  {
    name: 'API server that answers nothing for 40 s',
    pods: 3,
    play: async (scene) => {
      const { stage } = scene
      stage.freeze()
      stage.breakConnections()
      await pause(40_000)
      stage.mend()
      await stage.cluster.deletePod('web-1')
      await scene.follows('web-1', 'held')
    },
  },
  {
    name: `controller killed ${KILLS} times`,
    pods: 4,
    ours: true,
    play: async (scene) => {
      const over = new AbortController()
      const killing = (async () => {
        for (let i = 0; i < KILLS; i += 1) {
          await scene.stage.killController()
          await scene.begin()
          await pause(20 * i)
        }
        over.abort()
      })()
      for (let i = 1; !over.signal.aborted; i += 1) {
        await scene.arrive(`new-${i}`)
        const next = i <= 4 ? `web-${i}` : `new-${i - 4}`
        await scene.follows(`new-${i}`, 'in')
        await scene.stage.cluster.deletePod(next)
        await scene.follows(next, 'held')
        await scene.end(next)
      }
      await killing
    },
  },
  {
    name: 'two replicas, and the leader frozen',
    pods: 3,
    ours: true,
    play: async (scene) => {
      const first = scene.stage.controller
      const second = await scene.begin()
      first?.signal('SIGSTOP')
      const leads = (): true | undefined =>
        second?.last('leading')?.['leading'] === true || undefined
      await until(leads, 'the other one leads', FOLLOW)
      await scene.arrive('new-1')
      await scene.follows('new-1', 'in')
      await scene.stage.cluster.deletePod('web-1')
      await scene.follows('web-1', 'held')
      first?.signal('SIGCONT')
      await scene.end('web-1')
      await scene.follows('web-1', 'gone')
      await scene.retire('web-2')
    },
  },
]
