import type { LoadReport } from './load-job.ts'
import type { Protocol } from './mock-frames.ts'
import { someOf } from './options.ts'

/** What the client of a gateway speaks, and what its upstream does. */
export type Pair = {
  readonly name: PairName
  readonly client: Exclude<Protocol, 'chat'>
  readonly upstream: Protocol
  /** Whether both are the same, so that nothing has to be translated. */
  readonly isRelay: boolean
}

/** One job on one target in one round. */
export type TargetResult = {
  readonly round: number
  readonly target: string
  /** What the client spoke, and what the upstream did. */
  readonly protocol: Protocol
  readonly upstream: Protocol
  readonly report: LoadReport
}

/** As they are typed; a table says `Responses → chat`. */
export const pairNames = [
  'responses-chat',
  'responses-responses',
  'messages-chat',
  'messages-messages',
] as const
export type PairName = (typeof pairNames)[number]

/** One that is translated and one that is not, of both surfaces. */
export const tellingPairs: readonly PairName[] = ['responses-chat', 'messages-messages']

export function pairOf(name: PairName): Pair {
  const client = name.startsWith('messages') ? 'messages' : 'responses'
  const upstream = protocolAfter(name)
  return { name, client, upstream, isRelay: client === upstream }
}

/** The value of `--pair`: names with commas between them. */
export function readPairs(text: string | undefined, otherwise: readonly PairName[]): Pair[] {
  const names = text === undefined ? otherwise : someOf(text, { name: 'pair', words: pairNames })
  return names.map(pairOf)
}

export function formatPair({ client, upstream }: Pair): string {
  return `${client === 'messages' ? 'Messages' : 'Responses'} → ${upstream}`
}

/**
 * Whether a result of this target stands beside a pair. nginx and the upstream speak only what the
 * upstream does, and peers what they do, so they are beside each pair with that upstream.
 */
export function isBeside(
  { client, upstream }: Pair,
  target: string,
  result: TargetResult,
): boolean {
  if (result.target !== target || result.upstream !== upstream) return false
  return target !== 'Sluice' || result.protocol === client
}

function protocolAfter(name: PairName): Protocol {
  if (name.endsWith('-chat')) return 'chat'
  return name.endsWith('-messages') ? 'messages' : 'responses'
}
