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

function protocolAfter(name: PairName): Protocol {
  if (name.endsWith('-chat')) return 'chat'
  return name.endsWith('-messages') ? 'messages' : 'responses'
}
