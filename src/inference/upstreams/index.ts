import type { Adapter } from '#inference/upstream.ts'
import { isUrl, webProtocols } from '#lib/url.ts'
import { chatCompletions } from './chat-completions/adapter.ts'
import { demo } from './demo.ts'
import { messages } from './messages/adapter.ts'
import { responses } from './responses/adapter.ts'

/**
 * The adapters, by the value that `api` of an `[[upstream]]` has. Configuration checks, the doctor
 * and the types derive from this list: a new protocol is a folder and one line here.
 */
export const adapters = {
  chat: chatCompletions,
  responses,
  messages,
  demo,
} satisfies Record<string, Adapter>

/** These run models on this machine. Their adapters own processes, so the composition creates them. */
const localKinds = ['llama', 'onnx', 'flite'] as const
export type UpstreamKind = keyof typeof adapters | (typeof localKinds)[number]

/** The adapters of one process. */
export type Adapters = Readonly<Record<UpstreamKind, Adapter>>

const upstreamKinds: readonly string[] = [...Object.keys(adapters), ...localKinds]

/** Whether upstreams of this kind are servers, which have a URL. */
export function isRemote(kind: string): boolean {
  return kind !== 'demo' && !localKinds.some((local) => local === kind)
}

function isUpstreamKind(api: string): api is UpstreamKind {
  return upstreamKinds.includes(api)
}

/** The kind of a configured upstream, whose `api` was validated when the configuration was loaded. */
export function requireUpstreamKind(api: string): UpstreamKind {
  if (isUpstreamKind(api)) return api
  throw new Error(`no adapter for api "${api}"`)
}

/** The faults in `api` and `url` of the configured upstreams, one line each. */
export function* upstreamFaults(config: {
  readonly upstream: readonly { readonly api: string; readonly url?: string }[]
}): Generator<string> {
  for (const [index, { api, url }] of config.upstream.entries()) {
    if (!isUpstreamKind(api)) {
      yield `upstream.${index}.api: expected one of ${upstreamKinds.join(', ')}.`
    } else if (isRemote(api) && !isUrl(url, webProtocols)) {
      yield `upstream.${index}.url: an http or https URL is needed.`
    }
  }
}
