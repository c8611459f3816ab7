import type { JsonObject } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'

/** The statuses of a batch that has not ended. */
type OpenStatus = 'validating' | 'in_progress' | 'finalizing' | 'cancelling'
/** How a batch ends. */
export type Ending = 'completed' | 'failed' | 'expired' | 'cancelled'

/** The endpoints that the lines of a batch are requests to. */
export const responsesPath = '/v1/responses'
export const embeddingsPath = '/v1/embeddings'
export const messagesPath = '/compat/v1/messages'
export type LinePath = typeof responsesPath | typeof embeddingsPath | typeof messagesPath

/** Why a batch failed; `line` counts from 1. */
export type BatchError = {
  readonly code: string
  readonly message: string
  readonly param: string | null
  readonly line: number | null
}

export type NewBatch = {
  readonly id: string
  readonly ownerId: string
  readonly keyId: string | null
  readonly groups: readonly string[]
  readonly requestId: string
  readonly endpoint: LinePath
  /** By lower-case name: what changes how lines are read. */
  readonly headers: Readonly<Record<string, string>>
  readonly inputFileId: string | null
  readonly inputSha256: string
  readonly inputBytes: number
  readonly metadata: Readonly<Record<string, string>> | null
  readonly outputLifetimeS: number | null
  /** Known before validation where the requests were in the body. */
  readonly total: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

export type Batch = NewBatch & {
  readonly status: OpenStatus | Ending
  readonly ending: Ending | null
  readonly errors: readonly BatchError[] | null
  readonly model: string | null
  readonly completed: number
  readonly failed: number
  readonly usage: LineUsage
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly resultsSha256: string | null
  readonly inProgressAt: Date | null
  readonly finalizingAt: Date | null
  readonly cancellingAt: Date | null
  readonly endedAt: Date | null
}

export type LineUsage = {
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

/** A line that waits for its answer; its request is in the input. */
export type PendingLine = {
  readonly line: number
  readonly customId: string
  readonly startByte: number
  readonly bytes: number
}

export type LineOutcome = 'completed' | 'failed'

/**
 * Answers the request of a line with the body of a response of status 200. Throws an `AppError` like the
 * endpoint. Each endpoint that batches may use registers one.
 */
export type AnswerLine = (
  body: JsonObject,
  line: { readonly context: RequestContext; readonly headers: Headers },
) => Promise<object>

/** By endpoint; filled before batches run. */
export type LineAnswers = Map<LinePath, AnswerLine>

export function hasEnded({ endedAt }: Pick<Batch, 'endedAt'>): boolean {
  return endedAt !== null
}
