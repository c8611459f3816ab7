import { text } from '../texts/texts.ts'

/** A failed request. `message` is the API's own sentence. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  /** The field at fault: `tools[0].name`. */
  readonly param: string | null
  readonly requestId: string | null
  /** Seconds after which a retry makes sense. */
  readonly retryAfterS: number | null

  constructor(
    message: string,
    facts: {
      status: number
      code: string
      param?: string | null
      requestId?: string | null
      retryAfterS?: number | null
    },
  ) {
    super(message)
    this.status = facts.status
    this.code = facts.code
    this.param = facts.param ?? null
    this.requestId = facts.requestId ?? null
    this.retryAfterS = facts.retryAfterS ?? null
  }
}

export function unreachable(): ApiError {
  return new ApiError(text('error.unreachable'), { status: 0, code: 'unreachable' })
}

/** Reads the error body of either surface. */
export async function readError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as ErrorBody | null
  const error = body?.error
  return new ApiError(error?.message ?? text('error.status', { status: response.status }), {
    status: response.status,
    code: error?.code ?? error?.details?.error_code ?? error?.type ?? String(response.status),
    param: error?.param ?? null,
    requestId: response.headers.get('x-request-id'),
    retryAfterS: Number(response.headers.get('retry-after')) || null,
  })
}

type ErrorBody = {
  readonly error?: {
    readonly message?: string
    readonly code?: string
    readonly type?: string
    readonly param?: string | null
    readonly details?: { readonly error_code?: string }
  }
}
