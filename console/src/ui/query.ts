import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { isAborted } from '../api/call.ts'

export type Query<T> = {
  /** Stays while a newer version is loaded. */
  readonly data: T | undefined
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
}

/**
 * Loads data for a component, again when `key` changes or every `everyMs`. A result that is no longer
 * wanted is dropped.
 */
export function useQuery<T>(
  load: (signal: AbortSignal) => Promise<T>,
  key: string,
  { everyMs }: { everyMs?: number } = {},
): Query<T> {
  const [state, setState] = useState<{
    key: string
    data?: T
    error?: unknown
    isLoading: boolean
  }>({ key, isLoading: true })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  // `turn` asks for another round.
  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async () => {
      try {
        const data = await latest.current(controller.signal)
        if (!controller.signal.aborted) setState({ key, data, isLoading: false })
      } catch (error) {
        if (controller.signal.aborted || isAborted(error)) return
        setState((before) => ({
          ...(before.key === key && before.data !== undefined ? { data: before.data } : {}),
          key,
          error,
          isLoading: false,
        }))
      }
      if (everyMs !== undefined && !controller.signal.aborted) timer = setTimeout(run, everyMs)
    }
    setState((before) => (before.key === key ? before : { key, isLoading: true }))
    void run()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [key, turn, everyMs])
  const reload = useCallback(() => setTurn((count) => count + 1), [])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: !isCurrent || state.isLoading,
    reload,
  }
}

/** Runs an action once at a time; `isBusy` disables its button. */
export function useAction(): readonly [boolean, (action: () => Promise<void>) => Promise<void>] {
  const [isBusy, setBusy] = useState(false)
  const running = useRef(false)
  const run = useCallback(async (action: () => Promise<void>) => {
    if (running.current) return
    running.current = true
    setBusy(true)
    try {
      await action()
    } finally {
      running.current = false
      setBusy(false)
    }
  }, [])
  return [isBusy, run]
}
