import type { JsonObject } from '#lib/json.ts'

/** A stored configuration that is called like a model. */
export type Agent = AgentDefinition & {
  /** A UUID of version 7, so ids sort by age. */
  readonly id: string
  readonly ownerId: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Owns what the program itself provides; the id of a service account, so of no token's user. */
export const builtInOwnerId = '00000000-0000-7000-8000-000000000000'

export type AgentDefinition = {
  readonly name: string
  readonly description: string | null
  /** A model of the catalogue, not an agent. */
  readonly model: string
  readonly instructions: string | null
  readonly tools: readonly AgentTool[]
  /** Ids of the collections to search; some may be deleted since. */
  readonly collections: readonly string[]
  readonly sampling: AgentSampling
  /** How its answers are spoken; null: it has no voice. */
  readonly speech: AgentSpeech | null
  readonly visibility: Visibility
}

export type AgentTool = AgentFunction | AgentServer

export type AgentFunction = {
  readonly type: 'function'
  readonly name: string
  readonly description: string | null
  readonly parameters: JsonObject | null
  readonly strict: boolean | null
}

/** A configured MCP server, by its label. Callers of the agent need access to it. */
export type AgentServer = {
  readonly type: 'mcp'
  readonly label: string
  /** Null: all tools. */
  readonly allowed: readonly string[] | null
  readonly approval: 'always' | 'never'
}

/** Defaults for requests; null: the default of the model. */
export type AgentSampling = {
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly maxOutputTokens: number | null
  readonly reasoningEffort: string | null
}

/** A model of mode `speak`, with the voice and manner of `POST /v1/audio/speech`. */
export type AgentSpeech = {
  readonly model: string
  readonly voice: string
  readonly speed: number | null
  readonly instructions: string | null
}

/** Who may see and call the agent besides its owner. Users are token subjects. */
export type Visibility =
  | { readonly kind: 'owner' | 'everyone' }
  | { readonly kind: 'groups'; readonly groups: readonly string[] }
  | { readonly kind: 'users'; readonly users: readonly string[] }
