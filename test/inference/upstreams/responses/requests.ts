import type { GenerationRequest } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeRequest } from '#inference/upstreams/responses/encode.ts'
import { defaultQuirks, makeRequest, userMessage } from '#test/support/generation.ts'

/** Of a server that understands everything. */
export const quirks: UpstreamQuirks = { ...defaultQuirks, developerRole: true, strictTools: true }

/** A request that asks for nothing special. */
export const bare: GenerationRequest = makeRequest({ model: 'alias', items: [userMessage('Hi')] })

/** What becomes of its input. */
export const hi = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }
export const always = { model: 'm', stream: true, store: false }

/** The body that goes out, as JSON. */
export function body(
  request: Partial<GenerationRequest>,
  others: Partial<UpstreamQuirks> = {},
): unknown {
  const target = { model: 'm', targetName: 'upstream/m', quirks: { ...quirks, ...others } }
  return JSON.parse(JSON.stringify(encodeRequest({ ...bare, ...request }, target)))
}
