"""The merges of graph degree linkage, compiled by Numba on first use.

Every cluster keeps one row: the nodes it has edges to or from, sorted, with the summed weights of both directions.
Rows lie in one pool and are merged as sorted lists. Directed affinities of pairs of clusters lie in a hash table, since
the affinity towards a merged cluster is the sum of those towards its parts. Memory is ``O(n K)``.
"""

from __future__ import annotations

import numpy as np

from frpcag.runtime.compiled import compiled

EMPTY = -1


@compiled
def _sort(numbers, count):
    """Sort the first numbers in place, by a heap: NumPy's sort and slices take seconds to compile."""
    for end in range(2 * count - 1, 0, -1):
        # The first half of the rounds builds the heap from its end, the second moves its top behind it.
        size = min(end, count)
        i = end - count
        if i < 0:
            numbers[0], numbers[end], i = numbers[end], numbers[0], 0
        value = numbers[i]
        while 2 * i + 1 < size:
            down = 2 * i + 1
            if down + 1 < size and numbers[down + 1] > numbers[down]:
                down += 1
            if numbers[down] <= value:
                break
            numbers[i], i = numbers[down], down
        numbers[i] = value


@compiled
def _slot(keys, key):
    """Return where a key is in the open hash table, or the free place where it belongs."""
    mask = np.int64(len(keys) - 1)
    place = (key ^ (key >> np.int64(29))) * np.int64(0x5851F42D4C957F2D)
    place = (place ^ (place >> np.int64(32))) & mask
    while keys[place] != EMPTY and keys[place] != key:
        place = (place + 1) & mask
    return place


@compiled
def _get(keys, values, key):
    place = _slot(keys, key)
    return values[place] if keys[place] == key else 0.0


@compiled
def _rehashed(keys, values, alive, m, needed):
    """Return a table without the pairs of clusters that are gone, with room for twice what is left and needed."""
    count = needed
    for place in range(len(keys)):
        if keys[place] != EMPTY and alive[keys[place] // m] and alive[keys[place] % m]:
            count += 1
    size = 16
    while size < 3 * count:
        size *= 2
    new_keys = np.full(size, EMPTY, np.int64)
    new_values = np.zeros(size)
    for place in range(len(keys)):
        if keys[place] != EMPTY and alive[keys[place] // m] and alive[keys[place] % m]:
            at = _slot(new_keys, keys[place])
            new_keys[at] = keys[place]
            new_values[at] = values[place]
    return new_keys, new_values, count - needed


@compiled
def _best_partner(a, owner, size, start, length, nodes, outgoing, incoming, keys, values, m, scratch, touched):
    """Return the cluster of the largest affinity to ``a``, and the affinity; ties go to the smaller number."""
    count = 0
    for at in range(start[a], start[a] + length[a]):
        b = owner[nodes[at]]
        if b == a:
            continue
        if scratch[b] < 0:
            scratch[b] = 0.0
            touched[count] = b
            count += 1
        scratch[b] += outgoing[at] * incoming[at]
    best, most = -1, 0.0
    for i in range(count):
        b = touched[i]
        back = _get(keys, values, np.int64(b) * m + a)
        affinity = scratch[b] / (size[a] * size[a]) + back / (size[b] * size[b])
        if affinity > most or (affinity == most and affinity > 0 and b < best):
            best, most = b, affinity
        scratch[b] = -1.0
    return best, most


@compiled
def _push(heap_value, heap_a, heap_b, count, value, a, b):
    """Add an entry to the heap of largest affinities, ties by the numbers of the clusters."""
    i = count
    while i > 0:
        up = (i - 1) // 2
        if heap_value[up] > value or (heap_value[up] == value and (heap_a[up], heap_b[up]) <= (a, b)):
            break
        heap_value[i], heap_a[i], heap_b[i] = heap_value[up], heap_a[up], heap_b[up]
        i = up
    heap_value[i], heap_a[i], heap_b[i] = value, a, b


@compiled
def _pop(heap_value, heap_a, heap_b, count):
    """Remove the top of a heap of ``count`` entries."""
    last = count - 1
    value, a, b = heap_value[last], heap_a[last], heap_b[last]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= last:
            break
        if down + 1 < last and (
            heap_value[down + 1] > heap_value[down]
            or (
                heap_value[down + 1] == heap_value[down]
                and (heap_a[down + 1], heap_b[down + 1]) < (heap_a[down], heap_b[down])
            )
        ):
            down += 1
        if value > heap_value[down] or (value == heap_value[down] and (a, b) <= (heap_a[down], heap_b[down])):
            break
        heap_value[i], heap_a[i], heap_b[i] = heap_value[down], heap_a[down], heap_b[down]
        i = down
    heap_value[i], heap_a[i], heap_b[i] = value, a, b


@compiled
def merge_by_degrees(owner, m, indptr, neighbors, out_weight, in_weight):
    """Merge the two clusters of the largest affinity, again and again, until no two are linked both ways.

    Parameters
    ----------
    owner : int64 array of shape (n,)
        Cluster of each node, 0 to m - 1; overwritten.
    m : int
    indptr, neighbors, out_weight, in_weight : arrays
        Rows of the nodes: sorted neighbours with the weights of the edges to them and from them.

    Returns
    -------
    merges : int64 array of shape (n_merges, 2)
        In order: the second cluster became part of the first.
    """
    n = len(owner)
    size = np.zeros(m)
    for i in range(n):
        size[owner[i]] += 1.0
    # Nodes by cluster, as linked lists that are joined in O(1).
    head = np.full(m, EMPTY, np.int64)
    tail = np.full(m, EMPTY, np.int64)
    following = np.full(n, EMPTY, np.int64)
    for i in range(n):
        a = owner[i]
        if head[a] == EMPTY:
            head[a] = i
        else:
            following[tail[a]] = i
        tail[a] = i
    # Rows of the clusters: sums of the rows of their nodes.
    capacity = 2 * len(neighbors) + n + 16
    nodes = np.empty(capacity, np.int64)
    outgoing = np.empty(capacity)
    incoming = np.empty(capacity)
    start = np.zeros(m, np.int64)
    length = np.zeros(m, np.int64)
    sum_out = np.zeros(n)
    sum_in = np.zeros(n)
    seen = np.zeros(n, np.bool_)
    found = np.empty(n, np.int64)
    end = 0
    for a in range(m):
        count = 0
        i = head[a]
        while i != EMPTY:
            for at in range(indptr[i], indptr[i + 1]):
                j = neighbors[at]
                if not seen[j]:
                    seen[j] = True
                    found[count] = j
                    count += 1
                sum_out[j] += out_weight[at]
                sum_in[j] += in_weight[at]
            i = following[i]
        _sort(found, count)
        start[a], length[a] = end, count
        for at in range(count):
            j = found[at]
            nodes[end + at], outgoing[end + at], incoming[end + at] = j, sum_out[j], sum_in[j]
            sum_out[j], sum_in[j], seen[j] = 0.0, 0.0, False
        end += count
    # Directed affinities, not divided by sizes.
    alive = np.ones(m, np.bool_)
    keys = np.full(16, EMPTY, np.int64)
    values = np.zeros(16)
    keys, values, used = _rehashed(keys, values, alive, m, end)
    for a in range(m):
        for at in range(start[a], start[a] + length[a]):
            b = owner[nodes[at]]
            product = outgoing[at] * incoming[at]
            if b != a and product > 0:
                place = _slot(keys, np.int64(a) * m + b)
                if keys[place] == EMPTY:
                    keys[place] = np.int64(a) * m + b
                    used += 1
                values[place] += product
    scratch = np.full(m, -1.0)
    touched = np.empty(m, np.int64)
    partner = np.full(m, EMPTY, np.int64)
    affinity = np.zeros(m)
    room = 8 * m + 16
    heap_value = np.empty(room)
    heap_a = np.empty(room, np.int64)
    heap_b = np.empty(room, np.int64)
    waiting = 0
    for a in range(m):
        partner[a], affinity[a] = _best_partner(
            a, owner, size, start, length, nodes, outgoing, incoming, keys, values, m, scratch, touched
        )
        if partner[a] != EMPTY:
            _push(heap_value, heap_a, heap_b, waiting, affinity[a], a, partner[a])
            waiting += 1
    merges = np.empty((m - 1, 2), np.int64)
    done = 0
    near = np.empty(m, np.int64)
    while waiting > 0:
        value, a, b = heap_value[0], heap_a[0], heap_b[0]
        _pop(heap_value, heap_a, heap_b, waiting)
        waiting -= 1
        # An entry counts while it is what the cluster holds: later changes have entries of their own.
        if not alive[a] or partner[a] != b or affinity[a] != value:
            continue
        if length[a] < length[b]:
            a, b = b, a
        # The merged row, at the end of the pool; the pool is packed when it is full.
        if end + length[a] + length[b] > capacity:
            count = 0
            for c in range(m):
                if alive[c]:
                    near[count] = start[c] * m + c
                    count += 1
            _sort(near, count)
            end = 0
            for i in range(count):
                c = near[i] % m
                for at in range(length[c]):
                    nodes[end + at] = nodes[start[c] + at]
                    outgoing[end + at] = outgoing[start[c] + at]
                    incoming[end + at] = incoming[start[c] + at]
                start[c] = end
                end += length[c]
            if end + length[a] + length[b] > capacity:
                capacity = 2 * (end + length[a] + length[b])
                more_nodes, more_out, more_in = np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
                for at in range(end):
                    more_nodes[at], more_out[at], more_in[at] = nodes[at], outgoing[at], incoming[at]
                nodes, outgoing, incoming = more_nodes, more_out, more_in
        i, j, at = start[a], start[b], end
        last_i, last_j = i + length[a], j + length[b]
        while i < last_i or j < last_j:
            if j >= last_j or (i < last_i and nodes[i] < nodes[j]):
                nodes[at], outgoing[at], incoming[at] = nodes[i], outgoing[i], incoming[i]
                i += 1
            elif i >= last_i or nodes[j] < nodes[i]:
                nodes[at], outgoing[at], incoming[at] = nodes[j], outgoing[j], incoming[j]
                j += 1
            else:
                nodes[at] = nodes[i]
                outgoing[at] = outgoing[i] + outgoing[j]
                incoming[at] = incoming[i] + incoming[j]
                i += 1
                j += 1
            at += 1
        start[a], length[a] = end, at - end
        end = at
        # The nodes of b now belong to a.
        i = head[b]
        while i != EMPTY:
            owner[i] = a
            i = following[i]
        following[tail[a]] = head[b]
        tail[a] = tail[b]
        size[a] += size[b]
        alive[b] = False
        merges[done, 0], merges[done, 1] = a, b
        done += 1
        # Affinities of the merged cluster, both ways, with all clusters in its row.
        count = 0
        for at in range(start[a], start[a] + length[a]):
            c = owner[nodes[at]]
            if c == a:
                continue
            if scratch[c] < 0:
                scratch[c] = 0.0
                near[count] = c
                count += 1
            scratch[c] += outgoing[at] * incoming[at]
        if 2 * (used + 2 * count) > len(keys):
            keys, values, used = _rehashed(keys, values, alive, m, 2 * count)
        best, most = EMPTY, 0.0
        for i in range(count):
            c = near[i]
            there = scratch[c]
            scratch[c] = -1.0
            back = _get(keys, values, np.int64(c) * m + a) + _get(keys, values, np.int64(c) * m + b)
            place = _slot(keys, np.int64(a) * m + c)
            if keys[place] == EMPTY:
                keys[place] = np.int64(a) * m + c
                used += 1
            values[place] = there
            place = _slot(keys, np.int64(c) * m + a)
            if keys[place] == EMPTY:
                keys[place] = np.int64(c) * m + a
                used += 1
            values[place] = back
            between = there / (size[a] * size[a]) + back / (size[c] * size[c])
            if between > most or (between == most and between > 0 and c < best):
                best, most = c, between
            # What c holds: its partner is gone or has changed, or the merged cluster is nearer.
            if partner[c] == a or partner[c] == b:
                touched[i] = 1
            elif between > affinity[c] or (between == affinity[c] and between > 0 and a < partner[c]):
                partner[c], affinity[c] = a, between
                touched[i] = 2
            else:
                touched[i] = 0
        partner[a], affinity[a] = best, most
        # Flags move out of the way of the next scans, which use the same array.
        again = 0
        for i in range(count):
            if touched[i] == 1:
                near[again], again = near[i], again + 1
            elif touched[i] == 2:
                if waiting + 1 >= room:
                    waiting = _cleaned_heap(heap_value, heap_a, heap_b, waiting, alive, partner, affinity)
                _push(heap_value, heap_a, heap_b, waiting, affinity[near[i]], near[i], partner[near[i]])
                waiting += 1
        for i in range(again):
            c = near[i]
            partner[c], affinity[c] = _best_partner(
                c, owner, size, start, length, nodes, outgoing, incoming, keys, values, m, scratch, touched
            )
            if partner[c] != EMPTY:
                if waiting + 1 >= room:
                    waiting = _cleaned_heap(heap_value, heap_a, heap_b, waiting, alive, partner, affinity)
                _push(heap_value, heap_a, heap_b, waiting, affinity[c], c, partner[c])
                waiting += 1
        if partner[a] != EMPTY:
            if waiting + 1 >= room:
                waiting = _cleaned_heap(heap_value, heap_a, heap_b, waiting, alive, partner, affinity)
            _push(heap_value, heap_a, heap_b, waiting, affinity[a], a, partner[a])
            waiting += 1
    return merges[:done]


@compiled
def _cleaned_heap(heap_value, heap_a, heap_b, count, alive, partner, affinity):
    """Drop entries that no longer count, and return how many are left: at most two a cluster."""
    kept = 0
    for i in range(count):
        a, b, value = heap_a[i], heap_b[i], heap_value[i]
        if alive[a] and partner[a] == b and affinity[a] == value:
            _push(heap_value, heap_a, heap_b, kept, value, a, b)
            kept += 1
    return kept
