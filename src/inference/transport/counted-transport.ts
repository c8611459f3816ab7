import type { Transport } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'

/** The same transport; `tell` hears how each request was answered: `2xx` … `5xx`, or `none`. */
export function countAnswers<T extends Transport>(
  transport: T,
  upstreams: readonly Pick<Upstream, 'name' | 'baseUrl'>[],
  tell: (upstream: string, answer: string) => void,
): T {
  const nameOf = (url: string) =>
    upstreams.find(({ baseUrl }) => baseUrl !== '' && url.startsWith(baseUrl))?.name ?? 'other'
  return {
    ...transport,
    send(request: Parameters<Transport['send']>[0]) {
      const answered = transport.send(request)
      answered.then(
        ({ status }) => tell(nameOf(request.url), `${Math.floor(status / 100)}xx`),
        () => tell(nameOf(request.url), 'none'),
      )
      return answered
    },
  }
}
