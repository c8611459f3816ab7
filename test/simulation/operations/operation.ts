import type { Client } from '../client.ts'
import type { World } from '../world.ts'

/** The other tenants, by index; they share files with each other. */
export type Scene = {
  readonly client: Client
  readonly world: World
  readonly peers: readonly Peer[]
}
export type Peer = { readonly index: number; readonly userId: string }

/**
 * One kind of operation. It resolves when everything was acknowledged and is as it should be, throws
 * `Refused` or `Broken`, and `ViolationError` if what it received is wrong.
 */
export type OperationKind = {
  readonly kind: string
  /** Relative frequency. */
  readonly weight: number
  play(scene: Scene): Promise<void>
}
