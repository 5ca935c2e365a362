// Where value i of a tensor lies in memory, counted channel by channel: of PHWC4, with 4 lanes, or plain.
int place_of(int i, int channels, int pixels, int lanes) {
    int pixel = i / channels, channel = i % channels;
    return lanes == 1 ? pixel : (channel / 4 * pixels + pixel) * 4 + channel % 4;
}
