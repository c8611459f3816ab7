import type { Log } from '#telemetry/log.ts'

/** Limits of a log line about ignored parts of a request. */
const typesMax = 20
const typeCharsMax = 64

/** Ignored parts are no error, but useful to know when a model lacks them. `parts`: types by kind. */
export function logIgnored(
  log: Log,
  parts: Readonly<Record<string, readonly string[]>>,
  requestId: string,
): void {
  let count = 0
  for (const kind in parts) count += parts[kind]?.length ?? 0
  if (count === 0) return
  const clipped = Object.entries(parts).map(([kind, types]) => [
    kind,
    types.slice(0, typesMax).map((type) => type.slice(0, typeCharsMax)),
  ])
  log.info('request parts ignored', { request_id: requestId, ...Object.fromEntries(clipped) })
}
