import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isRunning } from './answer.ts'
import { turns } from './conversation.ts'

/** A reader who scrolled up further than this reads on undisturbed. */
const followPx = 120

/** Keeps the end of the conversation in view while an answer grows. */
export function FollowAnswer() {
  const mark = useRef<HTMLSpanElement>(null)
  const isFollowing = useRef(true)
  const wasGrowing = useRef(false)
  const last = turns.value.at(-1)?.answer
  const version = last?.version.value
  const scroller = () => mark.current?.closest('main') ?? null
  useEffect(() => {
    const main = scroller()
    const note = () => {
      if (main === null) return
      isFollowing.current = main.scrollHeight - main.scrollTop - main.clientHeight < followPx
    }
    main?.addEventListener('scroll', note, { passive: true })
    return () => main?.removeEventListener('scroll', note)
  }, [])
  useLayoutEffect(() => {
    isFollowing.current = true
  }, [turns.value.length])
  useLayoutEffect(() => {
    const main = scroller()
    const isGrowing = last !== undefined && isRunning(last)
    // Its end adds the figures below it.
    if (isFollowing.current && (isGrowing || wasGrowing.current)) {
      main?.scrollTo({ top: main.scrollHeight })
    }
    wasGrowing.current = isGrowing
  }, [version, turns.value.length])
  return <span ref={mark} hidden />
}
