import type { LoadReport } from './load-job.ts'
import type { Protocol } from './mock-frames.ts'
import { someOf } from './options.ts'

/** Protocols of client and upstream. */
export type Pair = {
  readonly name: PairName
  readonly client: Exclude<Protocol, 'chat'>
  readonly upstream: Protocol
  /** Whether both protocols are the same. */
  readonly isRelay: boolean
}

/** One job on one target in one round. */
export type TargetResult = {
  readonly round: number
  readonly target: string
  /** Protocols of client and upstream. */
  readonly protocol: Protocol
  readonly upstream: Protocol
  readonly report: LoadReport
}

/** As typed; tables print `Responses → chat`. */
export const pairNames = [
  'responses-chat',
  'responses-responses',
  'messages-chat',
  'messages-messages',
] as const
export type PairName = (typeof pairNames)[number]

/** One translated and one same-protocol pair, of both surfaces. */
export const quickPairs: readonly PairName[] = ['responses-chat', 'messages-messages']

export function pairOf(name: PairName): Pair {
  const client = name.startsWith('messages') ? 'messages' : 'responses'
  const upstream = protocolAfter(name)
  return { name, client, upstream, isRelay: client === upstream }
}

/** Value of `--pair`: comma-separated names. */
export function readPairs(text: string | undefined, otherwise: readonly PairName[]): Pair[] {
  const names = text === undefined ? otherwise : someOf(text, { name: 'pair', words: pairNames })
  return names.map(pairOf)
}

export function formatPair({ client, upstream }: Pair): string {
  return `${client === 'messages' ? 'Messages' : 'Responses'} → ${upstream}`
}

/**
 * Whether results of this target belong to a pair. nginx and direct match by upstream protocol,
 * peers too.
 */
export function belongsToPair(
  { client, upstream }: Pair,
  target: string,
  result: TargetResult,
): boolean {
  if (result.target !== target || result.upstream !== upstream) return false
  return !translating.has(target) || result.protocol === client
}

/** The name of a gateway that is asked to store its responses. */
export const storedTarget = 'Sluice, stored'

/** Targets whose clients speak another protocol than the upstream. */
const translating: ReadonlySet<string> = new Set(['Sluice', storedTarget, 'variant', 'floor'])

function protocolAfter(name: PairName): Protocol {
  if (name.endsWith('-chat')) return 'chat'
  return name.endsWith('-messages') ? 'messages' : 'responses'
}
