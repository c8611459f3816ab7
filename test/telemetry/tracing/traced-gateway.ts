import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { type OtlpReceiver, startOtlpReceiver } from '#test/support/otlp-receiver.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'

/** A gateway that exports its traces, the headers of traces, and an upstream. */

export const traceId = '0af7651916cd43dd8448eb211c80319c'
export const clientSpan = 'b7ad6b7169203331'
export const sampled = { traceparent: `00-${traceId}-${clientSpan}-01`, tracestate: 'vendor=1' }
export const unsampled = { traceparent: `00-${traceId}-${clientSpan}-00` }

export const cleanups: (() => Promise<void>)[] = []
/** For `afterEach`. */
export async function cleanUpAll(): Promise<void> {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp()
}

export async function start(
  environment: Record<string, string> = {},
  options: GatewayOptions = {},
): Promise<{ gateway: Gateway; receiver: OtlpReceiver }> {
  const receiver = startOtlpReceiver()
  cleanups.push(receiver.stop)
  const gateway = await startGateway({
    ...options,
    environment: { ...receiver.environment, ...environment },
  })
  cleanups.push(gateway.stop)
  return { gateway, receiver }
}

export async function ask(
  gateway: Gateway,
  path: string,
  body: object,
  headers = {},
): Promise<string> {
  const response = await gateway.request(path, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'demo-fast', ...body }),
  })
  return response.text()
}

export const whole = {
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  }),
}

export async function upstreamOf(answer: Parameters<typeof startReplayUpstream>[0]) {
  const upstream = await startReplayUpstream(answer)
  cleanups.push(upstream.stop)
  return upstream
}
