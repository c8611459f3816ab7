import { type OperationName, type ResponseOf, send } from '../../api/call.ts'
import { ApiError, readError, unreachable } from '../../api/errors.ts'
import { credential } from '../../session/credential.ts'
import { saveFile } from '../../ui/download.ts'

type Sending = {
  readonly signal: AbortSignal
  readonly onBytes: (sent: number) => void
}

/**
 * Posts a form with progress, which `fetch` does not report. Throws an `ApiError`, or an `AbortError`
 * after an abort.
 */
export function postForm<Name extends OperationName>(
  path: string,
  form: FormData,
  { signal, onBytes }: Sending,
): Promise<ResponseOf<Name>> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    const stop = () => request.abort()
    const settle = (end: () => void) => {
      signal.removeEventListener('abort', stop)
      end()
    }
    request.open('POST', path)
    for (const [name, value] of Object.entries(credential.headers('POST'))) {
      request.setRequestHeader(name, value)
    }
    request.upload.onprogress = ({ loaded }) => onBytes(loaded)
    request.onerror = () => settle(() => reject(unreachable()))
    request.onabort = () => settle(() => reject(new DOMException('Aborted', 'AbortError')))
    request.onload = () =>
      settle(() => {
        if (request.status >= 200 && request.status < 300) {
          resolve(JSON.parse(request.responseText) as ResponseOf<Name>)
        } else void readError(responseOf(request)).then(reject, reject)
      })
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    else request.send(form)
  })
}

function responseOf(request: XMLHttpRequest): Response {
  const headers = new Headers()
  for (const name of ['x-request-id', 'retry-after']) {
    const value = request.getResponseHeader(name)
    if (value !== null) headers.set(name, value)
  }
  return new Response(request.responseText, { status: request.status, headers })
}

/** Whether the same request may succeed later. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof ApiError && (error.status === 0 || error.status >= 500 || error.status === 429)
  )
}

/** With a cookie the browser downloads by itself; a pasted token needs a request of ours. */
export async function download(id: string, name: string): Promise<void> {
  if (credential.token() !== null) {
    const response = await send('GET /v1/files/{file_id}/content', { path: { file_id: id } })
    saveFile(await response.blob(), name)
    return
  }
  const link = document.createElement('a')
  link.href = `/v1/files/${id}/content`
  link.download = name
  link.click()
}
