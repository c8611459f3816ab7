import type { GenerationRequest } from '#inference/request.ts'
import type { Upstream } from '#inference/upstream.ts'
import type { JsonObject } from '#lib/json.ts'

/**
 * What a text is. `instructions`: system and developer texts. `native`: an item of an upstream's own
 * tool, as JSON. `other`: a text of the original request that only an upstream of its protocol reads.
 */
export type HookTextKind =
  | 'instructions'
  | 'user'
  | 'assistant'
  | 'refusal'
  | 'reasoning'
  | 'tool'
  | 'tool-call'
  | 'tool-result'
  | 'hosted-tool'
  | 'citation'
  | 'native'
  | 'other'

export type HookText = { readonly kind: HookTextKind; readonly text: string }

/** One call of a model. A response with hosted tools makes several. */
export type HookCall = {
  readonly requestId: string
  readonly userId: string
  readonly groups: readonly string[]
  readonly keyId: string | null
  /** The name of the model in the catalogue. */
  readonly model: string
  readonly agentId: string | null
  readonly surface: 'responses' | 'messages' | null
  /** With images and files, which are not among the texts. Read only. */
  readonly request: GenerationRequest
}

/** Nothing: allowed as it is. `texts`: one for each that was given. `refuse`: the reason, for the caller. */
export type Verdict =
  | undefined
  | { readonly texts: readonly string[] }
  | { readonly refuse: string }

/** The signal aborts when the client disconnects or the deadline of the hook has passed. */
export type Check = (texts: readonly HookText[], signal: AbortSignal) => Verdict | Promise<Verdict>

/** The checks of one call of a model; they may keep state between them. */
export type Checks = {
  /** The request, before the model is called. */
  readonly before?: Check
  /** The output that arrived together, before it is sent. */
  readonly output?: Check
  /** The whole output, of which nothing is sent before. */
  readonly after?: Check
}

export type Hook = { begin(call: HookCall): Checks }

export type HookTools = {
  readonly fetch: typeof fetch
  /** A configured upstream; throws for an unknown name. */
  upstream(name: string): Pick<Upstream, 'baseUrl' | 'key' | 'headers'>
}

/** Exported as `createHook` by the module of a hook; called once per worker. */
export type CreateHook = (options: JsonObject, tools: HookTools) => Hook | Promise<Hook>
