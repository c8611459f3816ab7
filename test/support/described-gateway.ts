import { afterAll, beforeAll } from 'bun:test'
import { listEndpoints } from '#app.ts'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { describedAnswers } from './described-answers.ts'
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'

type Sent = {
  /** An administrator, unless a subject of the group `users` is given. */
  readonly as?: string
  readonly json?: unknown
  readonly body?: NonNullable<RequestInit['body']>
  readonly headers?: Readonly<Record<string, string>>
}

export type DescribedAnswer = {
  readonly status: number
  /** Empty unless the response is JSON. */
  readonly body: JsonObject
  readonly text: string
  readonly headers: Headers
}

/** A gateway for the tests of a file that validates each response against its route. */
export function useDescribedGateway(options: GatewayOptions = {}) {
  const fixture: { gateway: Gateway; ask: typeof ask } = Object.create({ ask })
  let holdAgainst: ReturnType<typeof describedAnswers>
  beforeAll(async () => {
    fixture.gateway = await startGateway(options)
    holdAgainst = describedAnswers(listEndpoints(fixture.gateway.deps))
  })
  afterAll(() => fixture.gateway.stop())

  /** `how` is a method and a path: `GET /v1/files`. */
  async function ask(how: string, sent: Sent = {}): Promise<DescribedAnswer> {
    const [method = 'GET', path = '/'] = how.split(' ')
    const who = sent.as === undefined ? (['admins'] as const) : (['users'] as const)
    const httpResponse = await fetch(fixture.gateway.url + path, {
      method,
      headers: {
        authorization: `Bearer ${await fixture.gateway.token(who, sent.as ?? 'ada')}`,
        ...sent.headers,
      },
      ...(sent.body === undefined ? {} : { body: sent.body }),
      ...(sent.json === undefined ? {} : { body: JSON.stringify(sent.json) }),
    })
    const text = await httpResponse.text()
    const isJson = httpResponse.headers.get('content-type')?.startsWith('application/json') === true
    const body = isJson ? parseJson(text) : undefined
    holdAgainst(how, httpResponse.status, body)
    return {
      status: httpResponse.status,
      body: asRecord(body),
      text,
      headers: httpResponse.headers,
    }
  }

  return fixture
}
