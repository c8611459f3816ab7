import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { isAborted } from '../api/call.ts'

export type Query<T> = {
  /** Stays while a newer version is loaded. */
  readonly data: T | undefined
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
}

/** Null ends the polling until the next load. */
export type Polling<T> = { everyMs?: number | ((data: T) => number | null) }

/**
 * Loads data for a component, again when `key` changes or every `everyMs`, but not while the tab is
 * hidden. A result that is no longer wanted is dropped.
 */
export function useQuery<T>(
  load: (signal: AbortSignal) => Promise<T>,
  key: string,
  { everyMs }: Polling<T> = {},
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
  const pause = useRef(everyMs)
  pause.current = everyMs
  // `turn` asks for another round.
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let timer: ReturnType<typeof setTimeout> | undefined
    let waitMs: number | null = null
    const runWhenVisible = () => {
      if (!document.hidden) return void run()
      document.addEventListener('visibilitychange', () => void run(), { once: true, signal })
    }
    const run = async () => {
      try {
        const data = await latest.current(signal)
        if (signal.aborted) return
        setState({ key, data, isLoading: false })
        waitMs = waitOf(pause.current, data)
      } catch (error) {
        if (signal.aborted || isAborted(error)) return
        waitMs ??= typeof pause.current === 'number' ? pause.current : null
        setState((before) => ({
          ...(before.key === key && before.data !== undefined ? { data: before.data } : {}),
          key,
          error,
          isLoading: false,
        }))
      }
      if (waitMs !== null) timer = setTimeout(runWhenVisible, waitMs)
    }
    setState((before) => (before.key === key ? before : { key, isLoading: true }))
    void run()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [key, turn])
  const reload = useCallback(() => setTurn((count) => count + 1), [])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: !isCurrent || state.isLoading,
    reload,
  }
}

function waitOf<T>(everyMs: Polling<T>['everyMs'], data: T): number | null {
  return (typeof everyMs === 'function' ? everyMs(data) : everyMs) ?? null
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
