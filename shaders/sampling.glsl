// The coordinate at which pixel i samples another image, exactly (i * step + start) / den, as whole pixels and a
// fraction. The division is done in floats and corrected in integers, so that it is exact for images of any size.
void locate(int i, int step, int start, int den, out int whole, out float part) {
    int scaled = i * step + start;
    whole = int(floor(float(scaled) * (1.0 / float(den))));
    int rest = scaled - whole * den;
    int over = int(rest >= den) - int(rest < 0);
    whole += over;
    part = float(rest - over * den) * (1.0 / float(den));
}

// Whether the center that pixel i samples lies within the other image, which is `extent` pixels long.
bool is_inside(int i, int step, int start, int den, int extent) {
    int doubled = 2 * (i * step + start) + den;
    return doubled >= 0 && doubled <= 2 * den * extent;
}
