import { Webhook } from 'standardwebhooks'
import { asRecord, parseJson } from '#lib/json.ts'

/** One attempt at a delivery, as the receiver of a tenant has seen it. */
type Attempt = {
  readonly tenant: number
  readonly id: string
  /** Of the response or batch. */
  readonly subject: string
  readonly isSigned: boolean
  readonly isAcknowledged: boolean
}

/** Receives the webhooks of all tenants, and refuses the first attempt of some deliveries. */
export type WebhookReceiver = {
  readonly attempts: readonly Attempt[]
  urlOf(tenant: number): string
  /** Expects signatures by this secret. */
  trust(tenant: number, secret: string): void
  stop(): Promise<void>
}

/** Of so many deliveries, one is refused at first. */
const refusedOneIn = 8

export function startWebhookReceiver(): WebhookReceiver {
  const attempts: Attempt[] = []
  const secrets = new Map<number, string>()

  const isSigned = (tenant: number, headers: Headers, body: string): boolean => {
    try {
      new Webhook(secrets.get(tenant) ?? '').verify(body, Object.fromEntries(headers))
      return true
    } catch {
      return false
    }
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const body = await request.text()
      const tenant = Number(new URL(request.url).pathname.slice(1))
      const id = request.headers.get('webhook-id') ?? ''
      const isFirst = !attempts.some((attempt) => attempt.id === id)
      const isAcknowledged = !isFirst || Bun.hash(id) % BigInt(refusedOneIn) !== 0n
      attempts.push({
        tenant,
        id,
        subject: String(asRecord(asRecord(parseJson(body))['data'])['id']),
        isSigned: isSigned(tenant, request.headers, body),
        isAcknowledged,
      })
      return new Response(null, { status: isAcknowledged ? 204 : 500 })
    },
  })
  return {
    attempts,
    urlOf: (tenant) => `${server.url.origin}/${tenant}`,
    trust: (tenant, secret) => void secrets.set(tenant, secret),
    stop: () => server.stop(true),
  }
}
