import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'

/** Tools of several kinds as those of one request; null where there are none. */
export function joinTools([first, ...others]: readonly HostedTools[]): HostedTools | null {
  return first === undefined ? null : others.reduce(joinTwo, first)
}

function joinTwo(one: HostedTools, other: HostedTools): HostedTools {
  return {
    opening: [...one.opening, ...other.opening],
    definitions: () => [...one.definitions(), ...other.definitions()],
    choose: (choice) => other.choose(one.choose(choice)),
    call: (name) => one.call(name) ?? other.call(name),
    show(events) {
      const shown = one.show?.(events) ?? events
      return other.show?.(shown) ?? shown
    },
    close() {
      one.close()
      other.close()
    },
  }
}
