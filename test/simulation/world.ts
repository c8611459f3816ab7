import type { Prompt } from './site/model-output.ts'

/** What the clients know to be true by acknowledgements; the checks compare it with the gateway. */
export type World = {
  readonly responses: Map<string, KnownResponse>
  /** Responses that were accepted and whose end was not seen. */
  readonly accepted: Map<string, KnownResponse>
  /** Owners of background responses and batches by id: their end is announced by webhooks. */
  readonly announced: Map<string, number>
  /** Batches that were accepted: each must end, with every line once. */
  readonly batches: Map<string, KnownBatch>
  readonly files: Map<string, KnownFile>
  readonly collections: Map<string, KnownCollection>
  readonly keys: Map<string, KnownKey>
  readonly agents: Map<string, { tenant: number; name: string; state: Existence }>
  readonly uploads: Map<string, { tenant: number; state: 'pending' | 'unknown' | 'ended' }>
  /** Values that were written one after the other, by name. */
  readonly registers: Map<string, Register>
  /** Calls to models whose success was acknowledged, by request id; each has one record. */
  readonly calls: Map<string, { tenant: number; endedMs: number; kind: string }>
}

export type Existence = 'present' | 'deleted' | 'unknown'
type KnownResponse = {
  readonly tenant: number
  readonly prompt: Prompt
  readonly endedMs: number
}
type KnownBatch = {
  readonly tenant: number
  readonly prompts: ReadonlyMap<string, Prompt>
  readonly endedMs: number
}
type KnownFile = {
  readonly tenant: number
  readonly bytes: Buffer
  readonly readers: number[]
  state: Existence
}
export type KnownCollection = {
  readonly tenant: number
  readonly name: string
  /** Words of files that were added, by file id. */
  readonly words: Map<string, string>
  state: Existence
}
type KnownKey = {
  readonly tenant: number
  readonly secret: string
  state: 'live' | 'revoked' | 'unknown'
  revokedMs: number
}
/** The values that it may have: the last acknowledged one, or any written later without one. */
type Register = { readonly tenant: number; possible: unknown[] }

export function createWorld(): World {
  return {
    responses: new Map(),
    accepted: new Map(),
    announced: new Map(),
    batches: new Map(),
    files: new Map(),
    collections: new Map(),
    keys: new Map(),
    agents: new Map(),
    uploads: new Map(),
    registers: new Map(),
    calls: new Map(),
  }
}

/** Writes a register; whatever fails may have taken effect. */
export async function writeRegister(
  world: World,
  { name, tenant, value }: { name: string; tenant: number; value: unknown },
  write: () => Promise<void>,
): Promise<void> {
  const register = world.registers.get(name) ?? { tenant, possible: [undefined] }
  world.registers.set(name, register)
  register.possible.push(value)
  await write()
  register.possible = [value]
}
