/** Reads safetensors files, which consist of the header size (eight bytes), a JSON header and the data. */

export interface Tensor {
  shape: number[];
  data: Float64Array | Float32Array | Int32Array | Int8Array;
}

type Header = Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;

const ARRAYS = { F64: Float64Array, F32: Float32Array, I32: Int32Array, I8: Int8Array };

export function readTensors(file: ArrayBuffer): Map<string, Tensor> {
  const length = Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length))) as Header;
  const tensors = new Map<string, Tensor>();
  for (const [address, { dtype, shape, data_offsets }] of Object.entries(header)) {
    const Numbers = ARRAYS[dtype as keyof typeof ARRAYS];
    if (!Numbers) throw new Error(`${address}: numbers of type ${dtype}`);
    const [first, last] = data_offsets;
    tensors.set(address, { shape, data: new Numbers(file.slice(8 + length + first, 8 + length + last)) });
  }
  return tensors;
}

// Vectors are treated as matrices with one row.
export const rowsOf = (t: Tensor): number => (t.shape.length > 1 ? (t.shape[0] ?? 1) : 1);
export const columnsOf = (t: Tensor): number => t.shape[1] ?? t.shape[0] ?? 1;
export const valueAt = (t: Tensor, row: number, column: number): number => t.data[row * columnsOf(t) + column] ?? NaN;

/** Returns the address of a number, with two indices (row and column) for a matrix and one index for a vector. */
export const cellAddress = (address: string, t: Tensor, row: number, column: number): string =>
  `${address}[${t.shape.length === 2 ? `${row},${column}` : column}]`;

/** Splits an address such as out.prob[3,5] into a name and indices. */
export function readAddress(address: string): { name: string; index: number[] } {
  const [, name = address, inside] = /^([^[]+)(?:\[([^\]]*)\])?$/.exec(address) ?? [];
  return { name, index: inside ? inside.split(",").map(Number) : [] };
}
