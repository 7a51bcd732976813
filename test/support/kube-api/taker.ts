/** A reconciler that keeps what it is given, and a follower of Service `shop/web` that fills it. */
import type { DesiredMember } from 'drainable/endpoints'
import {
  followService,
  type FollowedService,
  type FollowOptions,
  type KubeConfigLike,
  type ServiceFollower,
} from 'drainable/kubernetes'

export const WEB = { namespace: 'shop', service: 'web', pool: 'web', port: 'http' }

export class Taker {
  readonly sets: (readonly DesiredMember[])[] = []

  set(desired: readonly DesiredMember[]): void {
    this.sets.push(desired)
  }

  /** The newest set as `10.0.0.1 serve`. */
  get newest(): readonly string[] | undefined {
    return this.sets.at(-1)?.map(({ address, state }) => `${address} ${state}`)
  }
}

export interface Following extends AsyncDisposable {
  readonly taker: Taker
  readonly follower: ServiceFollower
  /** Every problem that was told, oldest first. */
  readonly told: string[]
}

export function follow(
  config: KubeConfigLike,
  options: FollowOptions = {},
  services: FollowedService | readonly FollowedService[] = WEB,
): Following {
  const taker = new Taker()
  const follower = followService(taker, config, services, options)
  const told: string[] = []
  follower.on('problem', (error) => told.push(`${error.code} ${error.message}`))
  return {
    taker,
    follower,
    told,
    [Symbol.asyncDispose]: () => follower.close(),
  }
}
