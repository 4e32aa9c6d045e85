export const old = (word: string, name: string): string => `${word}, ${name}!`
