import { expect, test } from 'bun:test'
import { createFetchTransport } from '#inference/transport/fetch-transport.ts'
import { toAppError } from '#lib/errors.ts'
import { failureOf, request, textOf } from './transport-client.ts'

/** What the failures of `fetch` mean, by their codes. */

const coded = (code: string) => Object.assign(new Error('at http://secret.example'), { code })

function transportThat(fetch: () => Promise<Response>) {
  const log = { warn: () => {}, debug: () => {} }
  const limits = { idleMs: 1_000, idleSocketsPerOriginMax: 1, bufferBytesMax: 1_000 }
  return createFetchTransport({ ...limits, log, fetch })
}

const url = 'http://models.example/v1'

async function failureBefore(code: string) {
  const transport = transportThat(() => Promise.reject(coded(code)))
  return toAppError(await failureOf(transport.send(request(url))))
}

async function failureDuring(code: string) {
  const body = new ReadableStream({ pull: (controller) => controller.error(coded(code)) })
  const transport = transportThat(async () => new Response(body))
  return toAppError(await failureOf(textOf(await transport.send(request(url)))))
}

test.each([
  'InvalidContentLength',
  'InvalidHTTPResponse',
  'Malformed_HTTP_Response',
  'ResponseHeadersTooLarge',
  'UnexpectedData',
  'UnrequestedUpgrade',
  'UnsupportedTransferEncoding',
])('%s is an invalid response', async (code) => {
  for (const failure of [await failureBefore(code), await failureDuring(code)]) {
    expect(failure.kind).toBe('upstream_invalid_answer')
    expect(Bun.inspect(failure)).not.toContain('secret')
  }
})

test.each(['ECONNREFUSED', 'ENOTFOUND', 'ECONNRESET', 'unknown'])(
  '%s is an upstream that is not reached, and later one that broke off',
  async (code) => {
    expect((await failureBefore(code)).kind).toBe('upstream_unreachable')
    const during = await failureDuring(code)
    expect(during.kind).toBe('upstream_truncated')
    expect(Bun.inspect([await failureBefore(code), during])).not.toContain('secret')
  },
)
